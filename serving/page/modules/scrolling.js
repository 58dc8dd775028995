// Puts a question at the top, so that its answer is read downwards while it grows.

import { element, icon } from "./dom.js";
import { label } from "./language.js";

const NEAR = 48;
const ABOVE = 12;

export class Scroller {
  constructor(root) {
    this.root = root;
    this.button = element("button", { class: "quiet to-end", type: "button", hidden: true }, icon("down"));
    label(this.button, "toEnd");
    this.button.addEventListener("click", () => this.#scroll(this.#end));
    for (const event of ["scroll", "grown"]) root.addEventListener(event, () => this.#update(), { passive: true });
    new ResizeObserver(() => this.#update()).observe(root);
  }

  /** Show the last turn from its question on. */
  toLastTurn() {
    const last = this.root.querySelector(".turn:last-child");
    if (!last) return;
    const away = last.getBoundingClientRect().top - this.root.getBoundingClientRect().top;
    this.root.scrollTop += away - ABOVE;
    this.#update();
  }

  get #end() {
    return this.root.scrollHeight - this.root.clientHeight;
  }

  #scroll(top) {
    this.root.scrollTo({ top, behavior: "smooth" });
  }

  #update() {
    this.button.hidden = this.#end - this.root.scrollTop < NEAR;
  }
}
