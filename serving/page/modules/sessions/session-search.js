// Finds conversations by their titles and by what was said in them.

import { announce } from "../controls/announcer.js";
import { element } from "../controls/dom.js";
import { icon } from "../controls/icons.js";
import { searchTurns } from "../service/api.js";
import { label, say, words } from "../words/language.js";
import { sessionLink } from "./session-row.js";

const PAUSE = 200;
const BEFORE = 16;
const SHOWN = 90;

/** Calls `changed()` when there is something else to show and `open(id, {turn})` for a match. */
export class SessionSearch {
  #matches = [];
  #found = "";
  #failure = null;
  #waiting = 0;
  #order = 0;

  constructor({ sessions, changed, open }) {
    Object.assign(this, { sessions, changed, open });
    this.field = label(element("input", { type: "search", autocomplete: "off", maxlength: "200", dir: "auto" }), "searchSessions");
    this.field.addEventListener("input", (event) => event.isComposing || this.#ask());
    this.field.addEventListener("compositionend", () => this.#ask());
    this.field.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.field.value || event.isComposing) return;
      event.stopPropagation();
      this.field.value = "";
      this.#ask();
    });
    this.root = element("div", { class: "search", role: "search" }, icon("search"), this.field);
  }

  /** Return what is found, or null where nothing is looked for. */
  results() {
    if (!this.#text) return null;
    if (this.#failure) return [note(this.#failure)];
    const lower = this.#text.toLowerCase();
    const titled = this.sessions().filter(({ title }) => title.toLowerCase().includes(lower));
    const said = this.#said(lower);
    if (!titled.length && !said.length) return [note(words(this.#found === this.#text ? "nothingFound" : "searchingSessions"))];
    return [
      ...this.#group("foundTitles", titled.map(({ session_id: id, title }) => this.#row(id, null, title, ""))),
      ...this.#group("foundTurns", said.map(({ session_id: id, title, turn }) => this.#row(id, turn.id, title, excerpt(turn, lower)))),
    ];
  }

  get #text() {
    return this.field.value.trim();
  }

  /** Until there is an answer to what was typed last, what was found before is narrowed down. */
  #said(lower) {
    if (this.#found === this.#text) return this.#matches;
    const wanted = lower.split(/\s+/);
    return this.#matches.filter(({ turn }) => {
      const said = `${turn.question} ${turn.answer}`.toLowerCase();
      return wanted.every((word) => said.includes(word));
    });
  }

  #ask() {
    clearTimeout(this.#waiting);
    const order = ++this.#order;
    this.#failure = null;
    if (this.#text) this.#waiting = setTimeout(() => this.#find(order), PAUSE);
    this.changed();
  }

  async #find(order) {
    const text = this.#text;
    let matches = [];
    let failure = null;
    try {
      matches = await searchTurns(text);
    } catch (error) {
      failure = error.message;
    }
    if (order !== this.#order) return;
    this.#matches = matches;
    this.#found = text;
    this.#failure = failure;
    this.changed();
    announce(failure ?? say("foundCount", { count: matches.length }));
  }

  #group(key, rows) {
    return rows.length ? [element("h2", {}, words(key)), element("ul", {}, rows)] : [];
  }

  #row(id, turn, title, text) {
    const lower = this.#text.toLowerCase();
    const said = text && element("small", {}, marked(text, lower));
    const link = sessionLink(id, {}, () => this.open(id, { turn }), element("span", {}, marked(title, lower)), said);
    return element("li", { class: "session match", data: { fixed: JSON.stringify([id, turn, title, lower]) } }, link);
  }
}

/** Return the part of a turn in which the text, or else one of its words, stands. */
function excerpt({ question, answer }, lower) {
  const lines = [question, answer].map((text) => text.replace(/[*`|#\s]+/g, " "));
  for (const wanted of [lower, ...lower.split(/\s+/)]) {
    for (const line of lines) {
      const at = line.toLowerCase().indexOf(wanted);
      if (at >= 0) return cut(line, Math.max(at - BEFORE, 0));
    }
  }
  return cut(lines[0], 0);
}

function cut(line, from) {
  const end = from + SHOWN;
  return `${from ? "…" : ""}${line.slice(from, end)}${end < line.length ? "…" : ""}`;
}

/** Return the text with the words that were looked for marked. */
function marked(text, lower) {
  const wanted = lower.split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return text.split(new RegExp(`(${wanted.join("|")})`, "iu")).map((part, index) => (index % 2 ? element("mark", {}, part) : part));
}

function note(content) {
  return element("p", { class: "empty" }, content);
}
