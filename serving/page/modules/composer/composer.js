// Where the question is written and sent, and the answer stopped.

import { announce } from "../controls/announcer.js";
import { element } from "../controls/dom.js";
import { icon } from "../controls/icons.js";
import { composing } from "../controls/keyboard.js";
import { label, say, words } from "../words/language.js";
import { Attachments } from "./attachments.js";

/** Calls `send(text, images)` and `stop()`; `picker` stands among its tools. */
export class Composer {
  #busy = false;

  constructor({ send, stop, picker }) {
    this.field = label(
      element("textarea", { id: "question", rows: "1", maxlength: "100000", autocomplete: "off", dir: "auto" }),
      "question",
    );
    this.button = element("button", { class: "send", type: "submit" });
    this.attachments = new Attachments();
    const form = element(
      "form",
      { class: "composer" },
      this.attachments.root,
      this.field,
      element("div", { class: "tools" }, element("div", { class: "start" }, this.attachments.button, picker), this.button),
    );
    this.attachments.listen(this.field, form);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.#busy) stop();
      else this.#submit(send);
    });
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || composing(event)) return;
      event.preventDefault();
      if (this.#busy) this.#tellHowToSend();
      else this.#submit(send);
    });
    this.field.addEventListener("input", () => this.#fit());
    this.hint = element("p", { class: "hint" });
    this.root = element("div", {}, form, this.hint);
    this.busy = false;
  }

  set busy(value) {
    this.#busy = value;
    this.button.toggleAttribute("data-stop", value);
    this.button.replaceChildren(icon(value ? "stop" : "send"));
    label(this.button, value ? "stop" : "send");
    this.hint.replaceChildren(words(value ? "hintBusy" : "hint"));
    delete this.hint.dataset.asked;
    this.#fit();
  }

  /** Take the keyboard, except where one would come up and cover the page. */
  focus() {
    if (!matchMedia("(pointer: coarse)").matches) this.field.focus({ preventScroll: true });
  }

  /** What was written stays: it can be sent when the answer has ended. */
  #tellHowToSend() {
    this.hint.dataset.asked = "";
    announce(say("hintBusy"));
  }

  async #submit(send) {
    const text = this.field.value.trim();
    if (!text) return;
    this.field.value = "";
    this.#fit();
    send(text, await this.attachments.take());
  }

  #fit() {
    this.button.disabled = !this.#busy && !this.field.value.trim();
    if (CSS.supports("field-sizing", "content")) return;
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight}px`;
  }
}
