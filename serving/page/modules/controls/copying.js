// Copies text, and says so.

import { label, say, words } from "../words/language.js";
import { announce } from "./announcer.js";
import { element } from "./dom.js";
import { icon } from "./icons.js";

/** Return a small button that copies what `text()` returns. */
export function copyButton(text) {
  const button = label(element("button", { class: "quiet", type: "button" }, icon("copy")), "copy");
  button.dataset.fixed = "copy";
  button.addEventListener("click", () => copyText(text(), button));
  return button;
}

/** Copy, and let the button say so for a moment. */
export async function copyText(text, button) {
  const done = await copied(text);
  const before = [...button.childNodes];
  const told = button.querySelector("[data-words]") ? words(done ? "copied" : "notCopied") : "";
  announce(say(done ? "copied" : "notCopied"));
  button.replaceChildren(icon(done ? "check" : "close"), told);
  setTimeout(() => button.replaceChildren(...before), 1500);
}

/** Where the page is not served safely, browsers copy only what is marked. */
async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text).then(() => true, () => false);
  const field = element("textarea", { class: "unseen" });
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}
