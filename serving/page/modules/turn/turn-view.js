// One question and its answer, from the first stage to the last button.

import { announce } from "../controls/announcer.js";
import { element } from "../controls/dom.js";
import { MarkdownView } from "../markdown/view.js";
import { failureWords, say, words } from "../words/language.js";
import { citationChip, sourceList } from "./citations.js";
import { degradedNotes } from "./degraded.js";
import { failureNote, mayHelp } from "./failure.js";
import { questionView } from "./question-view.js";
import { turnActions } from "./turn-actions.js";
import { lostLine, routeLine, stageLine } from "./turn-way.js";

/**
 * Shows a turn. `act.session` is the conversation's id, `act.again(view, route?)` asks the
 * question anew, `act.edit(view, asked)` another one.
 */
export class TurnView {
  #answer = "";
  #thoughts = "";
  #facts = {};
  #stage = { name: "routing" };
  #citations = null;
  #feedback = null;
  #open = false;
  #frame = 0;

  constructor({ question, images = [] }, act) {
    this.id = null;
    this.inPlaceOf = null;
    this.question = question;
    this.images = images;
    this.session = act.session;
    this.again = (route) => act.again(this, route);
    this.text = new MarkdownView({ chip: (number) => this.#chip(number) });
    this.text.root.dir = "auto";
    this.asking = questionView(this, (asked) => act.edit(this, asked));
    this.way = element("div", { class: "way" });
    this.thinking = element("p");
    this.above = element("div");
    this.below = element("div");
    this.root = element(
      "article",
      { class: "turn" },
      element("h2", { class: "unseen" }, words("youAsked")),
      this.asking.root,
      element("h3", { class: "unseen" }, words("answer")),
      this.way,
      this.above,
      this.text.root,
      this.below,
    );
  }

  /** Show the turn as the history keeps it. */
  static kept(turn, act) {
    const view = new TurnView(turn, act);
    view.id = turn.id;
    const { question: original_query, intent, enhanced_query, assistants, outcome, degraded } = turn;
    view.#facts = { original_query, intent, enhanced_query, assistants, outcome, degraded };
    view.#answer = turn.answer;
    view.#citations = turn.citations;
    view.#feedback = turn.feedback ?? null;
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
    this.#showWay();
  }

  /** Show an event of the turn. */
  take({ type, data }) {
    switch (type) {
      case "stage":
        this.#stage = data;
        this.#showWay();
        if (!this.#answer) announce(stageLine(data)[1].textContent);
        break;
      case "metadata":
        this.#learn(data);
        break;
      case "reasoning":
        this.#thoughts += data;
        this.#draw();
        break;
      case "content":
        this.#answer += data;
        if (this.#answer === data) this.#showWay();
        this.#draw();
        break;
      case "citations":
        this.#citations = data;
        break;
      case "end":
        this.#end(data);
        break;
      case "error":
        if (data.code === "stopped") this.stop();
        else this.fail(data);
        break;
    }
  }

  /** Show that the connection is away, or that it is there again. */
  lost(away) {
    if (!this.#open) return;
    if (!away) return this.#showWay();
    this.way.replaceChildren(...lostLine());
    announce(say("lost"));
  }

  /** Show that the answer was stopped here. */
  stop() {
    if (this.#open) this.#finish({ stopped: true });
  }

  /** Show what went wrong, below what was already said. */
  fail(failure) {
    this.#finish({ failure });
    announce(say("failed", { text: failureWords(failure).textContent }));
  }

  #learn(facts) {
    this.#facts = { ...this.#facts, ...facts };
    this.id = facts.turn_id;
    if (facts.images?.length) this.images = facts.images;
    if (!this.question && facts.original_query) {
      this.question = facts.original_query;
      this.asking.show();
    }
    this.#showWay();
  }

  #end({ full_answer: answer, finish_reason: reason, metadata }) {
    this.#answer = answer;
    this.#facts = { ...this.#facts, ...metadata };
    this.#finish({ stopped: reason === "stopped" });
    announce(say("answerReady", { text: this.text.root.textContent }));
  }

  #showWay() {
    if (!this.#open) return;
    const told = this.#facts.intent && this.#stage.name !== "tool";
    const line = told ? routeLine(this.#facts, this.again, { working: !this.#answer }) : stageLine(this.#stage);
    this.way.replaceChildren(...line);
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
    shown.push(...degradedNotes(this.#facts.degraded ?? []));
    if (failure) shown.push(failureNote(failure, { retry: () => this.again() }));
    const again = !failure || !mayHelp(failure);
    shown.push(turnActions(this, { answer: this.#answer, feedback: this.#feedback, again }));
    this.below.replaceChildren(...shown);
    this.root.dispatchEvent(new Event("grown", { bubbles: true }));
  }

  #chip(number) {
    if (this.#facts.intent !== "knowledge_base") return null;
    if (this.#citations === null) return citationChip(number, null);
    const citation = this.#citations.find((each) => each.number === number);
    return citation ? citationChip(number, citation) : null;
  }
}
