// The question of a turn, which can be written anew.

import { composing } from "./composer.js";
import { element, icon } from "./dom.js";
import { label, words } from "./language.js";

/** Return the question; `edit(text)` is called with another one for its place. */
export function questionView(question, edit) {
  const root = element("div", { class: "asked" });
  const show = () => {
    const pencil = label(element("button", { class: "quiet", type: "button", on: { click: write } }, icon("pencil")), "edit");
    root.replaceChildren(pencil, element("p", { dir: "auto" }, question));
  };
  const write = () => {
    const close = () => {
      show();
      root.querySelector("button").focus();
    };
    const form = editor(question, edit, close);
    root.replaceChildren(form);
    const field = form.querySelector("textarea");
    field.focus();
    field.setSelectionRange(question.length, question.length);
  };
  show();
  return root;
}

function editor(question, edit, close) {
  const field = label(element("textarea", { rows: "2", maxlength: "100000", dir: "auto" }), "edit");
  field.value = question;
  const cancel = element("button", { class: "button", type: "button", on: { click: close } }, words("cancel"));
  const ask = element("button", { class: "button strong", type: "submit" }, words("send"));
  const form = element("form", { class: "editor" }, field, element("div", { class: "choices" }, cancel, ask));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = field.value.trim();
    if (text) edit(text);
  });
  field.addEventListener("keydown", (event) => {
    if (composing(event)) return;
    if (event.key === "Escape") close();
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    form.requestSubmit();
  });
  return form;
}
