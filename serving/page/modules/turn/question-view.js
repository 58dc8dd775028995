// The question of a turn, which can be written anew.

import { element } from "../controls/dom.js";
import { icon } from "../controls/icons.js";
import { composing } from "../controls/keyboard.js";
import { label, words } from "../words/language.js";
import { pictureRow } from "./pictures.js";

/**
 * Return the question of a turn as `root`, and `show()` for when it is another one;
 * `edit({question, images})` is called with what is to stand in its place.
 */
export function questionView(turn, edit) {
  const root = element("div", { class: "asked" });
  const show = () => {
    root.hidden = !turn.question;
    const pencil = label(element("button", { class: "quiet", type: "button", on: { click: write } }, icon("pencil")), "edit");
    const text = element("p", { dir: "auto" }, turn.question);
    const said = turn.images.length ? element("div", { class: "said" }, pictureRow(turn.images), text) : text;
    root.replaceChildren(pencil, said);
  };
  const write = () => {
    const close = () => {
      show();
      root.querySelector("button").focus();
    };
    const form = editor(turn, edit, close);
    root.replaceChildren(form);
    const field = form.querySelector("textarea");
    field.focus();
    field.setSelectionRange(turn.question.length, turn.question.length);
  };
  show();
  return { root, show };
}

function editor(turn, edit, close) {
  const images = [...turn.images];
  const row = element("div");
  const draw = () => row.replaceChildren(...(images.length ? [pictureRow(images, { remove })] : []));
  const remove = (index) => {
    images.splice(index, 1);
    draw();
  };
  draw();
  const field = label(element("textarea", { rows: "2", maxlength: "100000", dir: "auto" }), "edit");
  field.value = turn.question;
  const cancel = element("button", { class: "button", type: "button", on: { click: close } }, words("cancel"));
  const ask = element("button", { class: "button strong", type: "submit" }, words("send"));
  const form = element("form", { class: "editor" }, row, field, element("div", { class: "choices" }, cancel, ask));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const question = field.value.trim();
    if (question) edit({ question, images });
  });
  field.addEventListener("keydown", (event) => {
    if (composing(event)) return;
    if (event.key === "Escape") {
      event.stopPropagation(); // An answer that is being written goes on.
      close();
    }
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    form.requestSubmit();
  });
  return form;
}
