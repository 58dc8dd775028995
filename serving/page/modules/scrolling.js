// Puts a question at the top, so that its answer is read downwards while it grows.

import { element } from "./controls/dom.js";
import { icon } from "./controls/icons.js";
import { label } from "./words/language.js";

const NEAR = 48;
const ABOVE = 12;

/** Bring into sight what was opened, from its beginning on. */
export function reveal(opened) {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  opened.scrollIntoView({ block: "nearest", behavior: still ? "instant" : "smooth" });
}

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
    if (last) this.#show(last);
  }

  /** Show a turn and let it stand out for a moment. */
  toTurn(turn) {
    this.#show(turn);
    turn.classList.remove("found");
    requestAnimationFrame(() => turn.classList.add("found"));
  }

  #show(turn) {
    const away = turn.getBoundingClientRect().top - this.root.getBoundingClientRect().top;
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
