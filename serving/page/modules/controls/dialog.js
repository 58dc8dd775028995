// Forms that lie over the page until they are answered.

import { label, say, words } from "../words/language.js";
import { element } from "./dom.js";

/** Ask whether to go on, and return whether that was chosen. */
export async function confirmed({ title, text, choice }) {
  return (await answered({ title, content: element("p", {}, text), choice, danger: true })) !== null;
}

/** Ask for a line of text, and return it; null where nothing was given. */
export async function askedFor({ title, value, choice }) {
  const field = label(element("input", { type: "text", value, maxlength: "200", required: true, dir: "auto" }), title);
  const given = await answered({ title: say(title), content: field, choice });
  return given === null ? null : field.value.trim() || null;
}

/** Show the dialog and return the choice, or null where it was put away. */
function answered({ title, content, choice, danger = false }) {
  const { promise, resolve } = Promise.withResolvers();
  const cancel = element("button", { class: "button", type: "button", on: { click: () => dialog.close() } }, words("cancel"));
  const go = element("button", { class: `button ${danger ? "danger" : "strong"}`, value: choice }, words(choice));
  const form = element("form", { method: "dialog" }, element("h2", {}, title), content, element("div", { class: "choices" }, cancel, go));
  const dialog = element("dialog", { class: "dialog", "aria-label": title }, form);
  dialog.addEventListener("close", () => {
    dialog.remove();
    resolve(dialog.returnValue || null);
  });
  document.body.append(dialog);
  dialog.showModal();
  content.select?.();
  return promise;
}
