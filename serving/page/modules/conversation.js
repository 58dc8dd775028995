// A conversation: its turns on the page, and the answer that is being written.

import { ask, readSession, ServiceError } from "./api.js";
import { element } from "./dom.js";
import { say, words } from "./language.js";
import { TurnView } from "./turn-view.js";

/** Sends `changed` when an answer begins or ends, and `titled` with the first question. */
export class Conversation extends EventTarget {
  #stopping = null;

  constructor(id) {
    super();
    this.id = id;
    this.title = "";
    this.turns = 0;
    this.loading = false;
    this.root = element("div", { class: "conversation" });
  }

  get busy() {
    return this.#stopping !== null;
  }

  /** Show what was said before. */
  async load() {
    this.loading = true;
    const waiting = setTimeout(() => this.root.append(skeleton()), 200);
    try {
      const turns = await readSession(this.id);
      this.root.replaceChildren(...turns.map((turn) => TurnView.kept(turn, this.#asker(turn.question)).root));
      this.turns = turns.length;
      this.title = turns[0]?.question ?? "";
    } catch (error) {
      this.root.replaceChildren(loadFailure(error, () => this.load()));
      this.turns = 1;
    } finally {
      clearTimeout(waiting);
      this.loading = false;
    }
    this.#tell();
  }

  /** Ask a question and show its answer as it comes. */
  async ask(question, choices = {}) {
    if (this.busy) return;
    const view = new TurnView(question, this.#asker(question, choices));
    this.root.append(view.root);
    this.turns += 1;
    this.title ||= question;
    this.#stopping = new AbortController();
    const { signal } = this.#stopping;
    view.begin();
    this.#tell();
    try {
      await this.#follow(view, { question, session_id: this.id, ...choices }, signal);
    } catch (error) {
      if (signal.aborted) view.stop();
      else if (error instanceof ServiceError) view.fail({ message: error.message, retry_after: error.retryAfter });
      else {
        view.fail({ message: say("broken") });
        console.error(error);
      }
    } finally {
      this.#stopping = null;
      this.#tell();
    }
  }

  /** Stop the answer that is being written. */
  stop() {
    this.#stopping?.abort();
  }

  async #follow(view, body, signal) {
    for await (const event of ask(body, signal)) {
      view.take(event);
      if (event.type === "end" || event.type === "error") return;
    }
    throw new ServiceError({ code: "cut_off", message: say("cutOff") });
  }

  #asker(question, choices = {}) {
    return (route) => this.ask(question, route ? { ...choices, route } : choices);
  }

  #tell() {
    this.dispatchEvent(new Event("changed"));
  }
}

function skeleton() {
  const lines = Array.from({ length: 4 }, () => element("div", { class: "skeleton" }));
  return element("div", { "aria-hidden": "true" }, lines);
}

function loadFailure(error, retry) {
  const told = words("loadFailed", { reason: error.message });
  const again = element("button", { class: "button", type: "button", on: { click: retry } }, words("tryAgain"));
  return element("div", { class: "failure", role: "alert" }, told, again);
}
