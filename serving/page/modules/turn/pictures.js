// Images of questions and answers, small in the text and large on request.

import { element } from "../controls/dom.js";
import { icon } from "../controls/icons.js";
import { label, words } from "../words/language.js";

const KEPT = /^\/api\/images\/[0-9a-f]{64}\.(?:png|jpg|gif|webp)$/;

/** Whether an address is of an image that the service keeps; no other is ever loaded. */
export const isKept = (address) => KEPT.test(address);

/** Return images side by side; `remove(index)` takes one away. */
export function pictureRow(addresses, { remove = null } = {}) {
  const items = addresses.map((address, index) => {
    const number = index + 1;
    const cross = remove && label(element("button", { class: "quiet remove", type: "button" }, icon("close")), "removeImage", { number });
    cross?.addEventListener("click", () => remove(index));
    return element("li", {}, picture(address, number), cross);
  });
  return element("ul", { class: "pictures" }, items);
}

/** Return an image that can be opened. One that is gone says so. */
export function picture(address, number = "") {
  const image = element("img", { src: address, alt: "", loading: "lazy" });
  const button = label(element("button", { class: "picture", type: "button" }, image), "openImage", { number });
  button.dataset.fixed = address;
  button.addEventListener("click", () => open(address));
  image.addEventListener("error", () => button.replaceWith(words("imageGone", {}, "em")));
  return button;
}

function open(address) {
  const close = label(element("button", { class: "quiet", type: "submit" }, icon("close")), "close");
  const form = element("form", { method: "dialog" }, close);
  const dialog = element("dialog", { class: "large-picture" }, form, element("img", { src: address, alt: "" }));
  dialog.addEventListener("close", () => dialog.remove());
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
}
