// Numbers in the text, the card with the passage, and the list of sources.

import { element } from "../controls/dom.js";
import { icon } from "../controls/icons.js";
import { place } from "../controls/placing.js";
import { MarkdownView } from "../markdown/view.js";
import { label, say, words } from "../words/language.js";
import { meter, percentOf, readable } from "./passage.js";

/** Return the number of a citation as it stands in the text. */
export function citationChip(number, citation) {
  if (!citation) {
    return element("button", { class: "chip", type: "button", disabled: true, data: { fixed: `waiting-${number}` } }, String(number));
  }
  const chip = opener({ class: "chip" }, citation, String(number));
  chip.addEventListener("pointerenter", (event) => {
    if (event.pointerType === "mouse") chip.hovering = setTimeout(() => card.open(chip, citation, { keep: false }), 180);
  });
  chip.addEventListener("pointerleave", () => {
    clearTimeout(chip.hovering);
    card.closeSoon(chip);
  });
  return chip;
}

/** Return the list of what an answer cites. */
export function sourceList(citations) {
  const items = citations.map((citation) => {
    const row = opener(
      { class: "source" },
      citation,
      element("b", {}, String(citation.number)),
      element("span", {}, citation.document),
      element("small", {}, ...ends(placeOf(citation))),
    );
    return element("li", {}, row);
  });
  return element("section", { class: "sources" }, words("sources", {}, "h3"), element("ol", {}, items));
}

/** Where a passage stands in its document, or else among which documents. */
const placeOf = ({ location, assistant }) => readable(location) || assistant;

/** Return a place so that its last part, which tells it from others, is not the one that is cut. */
function ends(place) {
  const at = place.lastIndexOf(" › ");
  if (at < 0) return [element("span", {}, place)];
  return [element("span", { class: "whole" }, place.slice(0, at)), element("span", { class: "last" }, place.slice(at))];
}

function opener(attributes, citation, ...children) {
  const button = element(
    "button",
    {
      ...attributes,
      type: "button",
      "aria-haspopup": "dialog",
      "aria-expanded": "false",
      data: { fixed: `source-${citation.number}` },
      on: { click: () => card.toggle(button, citation) },
    },
    ...children,
  );
  const { number, document: name } = citation;
  label(button, "sourceAt", { number, document: name, place: placeOf(citation) });
  button.removeAttribute("title");
  return button;
}

/** The one card of the page: it shows the passage of the number that was pointed at. */
class Card {
  #shown = null;
  #opener = null;
  #kept = false;
  #closing = 0;

  open(button, citation, { keep }) {
    clearTimeout(this.#closing);
    if (this.#opener === button) {
      this.#kept ||= keep;
      return;
    }
    this.close();
    this.#opener = button;
    this.#kept = keep;
    this.#shown = this.#draw(citation);
    document.body.append(this.#shown);
    button.setAttribute("aria-expanded", "true");
    place(this.#shown, button);
    if (keep) this.#shown.focus({ preventScroll: true });
  }

  toggle(button, citation) {
    if (this.#opener === button && this.#kept) this.close();
    else {
      this.open(button, citation, { keep: true });
      this.#shown.focus({ preventScroll: true });
    }
  }

  closeSoon(button) {
    if (this.#opener !== button || this.#kept) return;
    this.#closing = setTimeout(() => this.close(), 220);
  }

  close({ refocus = false } = {}) {
    clearTimeout(this.#closing);
    if (!this.#shown) return;
    this.#shown.remove();
    this.#opener.setAttribute("aria-expanded", "false");
    if (refocus) this.#opener.focus();
    this.#shown = null;
    this.#opener = null;
  }

  get shown() {
    return this.#shown !== null;
  }

  has(node) {
    return this.#shown?.contains(node) || this.#opener?.contains(node);
  }

  #draw(citation) {
    const { number, document: name, location, assistant, text, score, url } = citation;
    const where = [assistant, readable(location)].filter(Boolean).join(" · ");
    const close = label(element("button", { class: "quiet", type: "button" }, icon("close")), "close");
    close.addEventListener("click", () => this.close({ refocus: true }));
    const relevance = element("span", {}, meter(score), words("relevance", { percent: percentOf(score) }));
    const passage = new MarkdownView({ chip: () => null });
    passage.show(text);
    passage.root.classList.add("passage");
    passage.root.tabIndex = 0;
    passage.root.dir = "auto";
    return element(
      "section",
      {
        class: "card",
        role: "dialog",
        tabindex: "-1",
        "aria-label": say("source", { number, document: name }),
        on: {
          pointerenter: () => clearTimeout(this.#closing),
          pointerleave: () => this.closeSoon(this.#opener),
        },
      },
      element("header", {}, element("div", {}, element("strong", {}, name), element("small", {}, where)), close),
      passage.root,
      element("footer", {}, relevance, documentLink(url)),
    );
  }
}

/** Return a link to a document, where it has an address that may be opened. */
export function documentLink(url) {
  if (!/^(?:https?:\/\/|\/api\/documents\/)/i.test(url ?? "")) return null;
  return element("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, words("openDocument"));
}

const card = new Card();

/** Close the card whatever it shows, as when the conversation changes. */
export const closeCard = () => card.close();

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !card.shown) return;
  event.stopImmediatePropagation(); // What is below the card goes on.
  card.close({ refocus: true });
});
document.addEventListener("pointerdown", (event) => {
  if (!card.has(event.target)) card.close();
});
document.addEventListener("scroll", (event) => {
  if (!card.has(event.target)) card.close();
}, { capture: true, passive: true });
