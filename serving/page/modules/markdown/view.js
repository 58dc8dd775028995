// Shows a Markdown text that may still be growing; what did not change stays as it is.

import { copyButton } from "../controls/copying.js";
import { become, element } from "../controls/dom.js";
import { picture } from "../turn/pictures.js";
import { label } from "../words/language.js";
import { readBlocks } from "./blocks.js";
import { readInline } from "./inline.js";
import { keepTogether } from "./together.js";

const TASK = /^\[([ xX])\](?:\s+|$)/;
const CITATION = /\[\d/;
const MARKS = { strong: "strong", stress: "em", gone: "s" };

/** The text of an answer. `chip` makes the element of a citation from its number, or nothing. */
export class MarkdownView {
  constructor({ chip }) {
    this.chip = chip;
    this.root = element("div", { class: "prose" });
    this.shown = [];
  }

  /** Show `text`. While `open` it goes on; with `cited`, what the citations are is known now. */
  show(text, { open = false, cited = false } = {}) {
    const blocks = readBlocks(text, { open });
    const last = blocks.length - 1;
    for (const [index, block] of blocks.entries()) {
      const growing = open && index === last;
      const before = this.shown[index];
      const known = !(cited && CITATION.test(block.source));
      const same = known && before?.source === block.source && !before.growing && !growing;
      if (!same) this.#draw(index, this.#block(block, growing), before?.type === block.type);
      this.shown[index] = { source: block.source, type: block.type, growing };
    }
    this.shown.length = blocks.length;
    while (this.root.children.length > blocks.length) this.root.lastChild.remove();
    this.root.toggleAttribute("data-streaming", open);
  }

  #draw(index, made, alike) {
    const present = this.root.children[index];
    if (!present) this.root.append(made);
    else if (alike && present.nodeName === made.nodeName) become(present, made);
    else present.replaceWith(made);
  }

  #block(block, open) {
    const inline = (text) => this.#inline(readInline(text, { open }));
    switch (block.type) {
      case "heading":
        return element(`h${Math.min(block.level + 2, 5)}`, {}, inline(block.text));
      case "code":
        return codeBlock(block);
      case "formula":
        return element("pre", { class: "formula" }, block.text);
      case "rule":
        return element("hr");
      case "quote":
        return element("blockquote", {}, this.#blocks(block.blocks, open));
      case "list":
        return this.#list(block, open);
      case "table":
        return this.#table(block, inline);
      default:
        return element("p", {}, inline(block.text));
    }
  }

  #blocks(blocks, open) {
    return blocks.map((block, index) => this.#block(block, open && index === blocks.length - 1));
  }

  #list({ ordered, start, items }, open) {
    const made = items.map((blocks, index) => {
      const [first, ...others] = blocks;
      const growing = open && index === items.length - 1;
      // A short item is its text alone, without the space around a paragraph.
      if (first?.type !== "paragraph") return element("li", {}, this.#blocks(blocks, growing));
      const task = TASK.exec(first.text);
      const told = first.text.slice(task?.[0].length ?? 0);
      const text = this.#inline(readInline(told, { open: growing && !others.length }));
      const box = task && checkBox(task[1] !== " ");
      return element("li", { class: task ? "task" : null }, box, text, this.#blocks(others, growing));
    });
    return element(ordered ? "ol" : "ul", { start: ordered && start !== 1 ? start : null }, made);
  }

  #table({ head, align, rows }, inline) {
    const row = (tag, cells) =>
      element("tr", {}, cells.map((cell, index) => element(tag, { data: { align: align[index] } }, inline(cell))));
    const body = element("tbody", {}, rows.map((cells) => row("td", cells)));
    const table = element("table", {}, element("thead", {}, row("th", head)), body);
    return element("div", { class: "table", tabindex: "0" }, table);
  }

  #inline(spans) {
    return this.#spans(keepTogether(spans));
  }

  #spans(spans) {
    return spans.flatMap((span) => {
      switch (span.type) {
        case "text":
          return span.text;
        case "together":
          return element("span", { class: "together" }, this.#spans(span.spans));
        case "break":
          return element("br");
        case "code":
          return element("code", {}, span.text);
        case "formula":
          return element("span", { class: "formula" }, span.text);
        case "citation":
          return this.chip(span.number) ?? `[${span.number}]`;
        case "link":
          return element(
            "a",
            { href: span.address, target: "_blank", rel: "noopener noreferrer nofollow" },
            this.#inline(span.spans),
          );
        case "picture":
          return picture(span.address);
        case "strongest":
          return element("strong", {}, element("em", {}, this.#inline(span.spans)));
        case "spans":
          return this.#inline(span.spans);
        case "nothing":
          return [];
        default:
          return element(MARKS[span.type], {}, this.#inline(span.spans));
      }
    });
  }
}

function checkBox(done) {
  return label(element("input", { type: "checkbox", disabled: true, checked: done }), done ? "taskDone" : "taskOpen");
}

function codeBlock({ kind, text }) {
  const shown = element("code", {}, text);
  const button = copyButton(() => button.closest(".code").querySelector("code").textContent);
  const header = element("header", {}, element("span", {}, kind || "text"), button);
  return element("div", { class: "code" }, header, element("pre", { tabindex: "0" }, shown));
}
