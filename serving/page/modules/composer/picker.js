// Chooses which assistants are asked; without a choice each question decides.

import { element } from "../controls/dom.js";
import { icon } from "../controls/icons.js";
import { menuButton } from "../controls/menu.js";
import { listAssistants } from "../service/api.js";
import { label, say, words } from "../words/language.js";

export class AssistantPicker {
  #chosen = new Set();
  #known = [];

  constructor() {
    this.text = element("span");
    this.button = element("button", { class: "quiet pick", type: "button" }, icon("book"), this.text, icon("down"));
    label(this.button, "assistants");
    this.root = menuButton(this.button, () => this.#draw());
    document.addEventListener("languagechange", () => this.#show());
    this.#show();
  }

  /** The names of the chosen assistants, or null where all may be asked. */
  get names() {
    return this.#chosen.size ? [...this.#chosen] : null;
  }

  get known() {
    return this.#known;
  }

  /** Read what can be chosen. */
  async load() {
    try {
      this.#known = await listAssistants();
    } catch {
      this.#known = []; // The badge tells that the knowledge base is not there.
    }
    const names = new Set(this.#known.map(({ name }) => name));
    this.#chosen = new Set([...this.#chosen].filter((name) => names.has(name)));
    this.#show();
  }

  async #draw() {
    await this.load();
    if (!this.#known.length) return [words("noAssistants", {}, "p")];
    const automatic = this.#row({ name: null, title: words("automatic"), text: words("automaticText", {}, "small") });
    const rows = this.#known.map(({ name, description }) =>
      this.#row({ name, title: element("span", {}, name), text: element("small", {}, shortened(description)) }),
    );
    return [automatic, ...rows];
  }

  #row({ name, title, text }) {
    const box = element("input", { type: "checkbox" });
    box.checked = name === null ? !this.#chosen.size : this.#chosen.has(name);
    box.addEventListener("change", () => {
      if (name === null) this.#chosen.clear();
      else if (box.checked) this.#chosen.add(name);
      else this.#chosen.delete(name);
      this.#update(box.closest(".menu"));
    });
    box.dataset.name = name ?? "";
    return element("label", {}, box, title, text);
  }

  #update(menu) {
    for (const box of menu.querySelectorAll("input")) {
      box.checked = box.dataset.name ? this.#chosen.has(box.dataset.name) : !this.#chosen.size;
    }
    this.#show();
  }

  #show() {
    this.text.textContent = this.names?.join(say("comma")) ?? say("automatic");
  }
}

const shortened = (text) => (text.length > 120 ? `${text.slice(0, 118).trimEnd()} …` : text);
