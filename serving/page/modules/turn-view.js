// One question and its answer, from the first stage to the last button.

import { announce } from "./announcer.js";
import { citationChip, sourceList } from "./citations.js";
import { degradedNote } from "./degraded.js";
import { element, icon } from "./dom.js";
import { say, words } from "./language.js";
import { copyText, MarkdownView } from "./markdown/view.js";
import { questionView } from "./question-view.js";
import { routeLine, stageLine, whyList } from "./turn-way.js";

/** Shows a turn. `act.again(view, route?)` asks its question anew, `act.edit(view, asked)` another. */
export class TurnView {
  #answer = "";
  #thoughts = "";
  #facts = {};
  #usage = {};
  #citations = null;
  #open = false;
  #frame = 0;

  constructor({ question, images = [] }, act) {
    this.id = null;
    this.inPlaceOf = null;
    this.question = question;
    this.images = images;
    this.again = (route) => act.again(this, route);
    this.text = new MarkdownView({ chip: (number) => this.#chip(number) });
    this.way = element("div", { class: "way" });
    this.thinking = element("p");
    this.above = element("div");
    this.below = element("div");
    const asked = element("h2", { class: "unseen" }, words("youAsked"));
    const answered = element("h3", { class: "unseen" }, words("answer"));
    this.root = element(
      "article",
      { class: "turn" },
      asked,
      questionView(this, (asked) => act.edit(this, asked)),
      answered,
      this.way,
      this.above,
      this.text.root,
      this.below,
    );
    this.text.root.dir = "auto";
  }

  /** Show the turn as the history keeps it. */
  static kept(turn, act) {
    const view = new TurnView(turn, act);
    view.id = turn.id;
    const { question: original_query, intent, reason, enhanced_query, assistants, degraded } = turn;
    view.#facts = { original_query, intent, reason, enhanced_query, assistants, degraded };
    view.#usage = turn.usage;
    view.#answer = turn.answer;
    view.#citations = turn.citations;
    const failure = turn.status === "failed" ? { ...turn.error } : null;
    view.#finish({ stopped: turn.status === "stopped", failure });
    return view;
  }

  /** What was asked, as it can be asked anew. */
  get asked() {
    return { question: this.question, images: this.images };
  }

  /** Nothing was said: it ended before. */
  get unanswered() {
    return !this.#answer;
  }

  /** Show that the work has begun. */
  begin() {
    this.#open = true;
    this.way.replaceChildren(...stageLine({ name: "routing" }));
  }

  /** Show an event of the turn. */
  take({ type, data }) {
    switch (type) {
      case "stage":
        if (!this.#answer) {
          const line = stageLine(data);
          this.way.replaceChildren(...line);
          announce(line[1].textContent);
        }
        break;
      case "metadata":
        this.#facts = data;
        this.id = data.turn_id;
        if (data.images?.length) this.images = data.images;
        break;
      case "reasoning":
        this.#thoughts += data;
        this.#draw();
        break;
      case "content":
        if (!this.#answer) this.way.replaceChildren(...routeLine(this.#facts, this.again));
        this.#answer += data;
        this.#draw();
        break;
      case "citations":
        this.#citations = data;
        break;
      case "usage":
        this.#usage = data;
        break;
      case "end":
        this.#answer = data.full_answer;
        this.#facts = data.metadata;
        this.#finish();
        announce(say("answerReady", { text: this.text.root.textContent }));
        break;
      case "error":
        this.fail(data);
        break;
    }
  }

  /** Show that the answer was stopped here. */
  stop() {
    if (this.#open) this.#finish({ stopped: true });
  }

  /** Show what went wrong, below what was already said. */
  fail(failure) {
    this.#finish({ failure });
    announce(say("failed", { text: failure.message }));
  }

  /** Draw at most once per frame, however many pieces come. */
  #draw() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      if (!this.#open) return;
      this.text.show(this.#answer, { open: true });
      this.#drawThoughts();
      this.root.dispatchEvent(new Event("grown", { bubbles: true }));
    });
  }

  #drawThoughts() {
    if (!this.#thoughts) return;
    if (!this.thinking.isConnected) {
      this.above.append(element("details", { class: "thinking" }, words("thinking", {}, "summary"), this.thinking));
    }
    this.thinking.textContent = this.#thoughts;
  }

  #finish({ stopped = false, failure = null } = {}) {
    this.#open = false;
    this.#citations ??= [];
    this.way.replaceChildren(...routeLine(this.#facts, this.again));
    this.text.show(this.#answer, { cited: true });
    this.#drawThoughts();
    const shown = this.#citations.length ? [sourceList(this.#citations)] : [];
    if (stopped) shown.push(element("p", { class: "stopped" }, words("stopped")));
    shown.push(...(this.#facts.degraded ?? []).map(degradedNote));
    if (failure) shown.push(this.#failure(failure));
    shown.push(this.#actions());
    this.below.replaceChildren(...shown);
    this.root.dispatchEvent(new Event("grown", { bubbles: true }));
  }

  #chip(number) {
    if (this.#facts.intent !== "knowledge_base") return null;
    if (this.#citations === null) return citationChip(number, null);
    const citation = this.#citations.find((each) => each.number === number);
    return citation ? citationChip(number, citation) : null;
  }

  #actions() {
    const copy = this.#action("copy", () => copyText(this.#answer, copy));
    const why = this.#action("why", () => {
      const present = this.below.querySelector(".why");
      if (present) present.remove();
      else this.below.append(whyList(this.#facts, this.#usage));
      why.setAttribute("aria-expanded", String(!present));
    });
    const again = this.#action("again", () => this.again());
    return element("div", { class: "actions" }, this.#answer ? copy : null, again, this.#facts.intent ? why : null);
  }

  #action(name, act) {
    return element("button", { class: "quiet", type: "button", on: { click: act } }, icon(name), words(name));
  }

  #failure({ message, retry_after: seconds }) {
    const told = message ? element("span", {}, message) : words("interrupted");
    const retry = element("button", { class: "button", type: "button", on: { click: () => this.again() } }, words("tryAgain"));
    if (seconds) countDown(retry, Math.ceil(seconds));
    return element("div", { class: "failure", role: "alert" }, icon("alert"), told, retry);
  }
}

function countDown(button, seconds) {
  button.disabled = seconds > 0;
  button.replaceChildren(seconds > 0 ? words("retryIn", { seconds }) : words("tryAgain"));
  if (seconds > 0) setTimeout(() => countDown(button, seconds - 1), 1000);
}
