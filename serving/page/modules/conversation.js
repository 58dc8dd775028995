// A conversation: its turns on the page, and the answer that is being written.

import { ask, readSession, ServiceError, stopAnswer } from "./api.js";
import { element } from "./dom.js";
import { say, words } from "./language.js";
import { TurnView } from "./turn-view.js";

/** Sends `changed` when an answer begins or ends. */
export class Conversation extends EventTarget {
  #stopping = null;
  #answering = null;
  #views = [];

  constructor(id) {
    super();
    this.id = id;
    this.title = "";
    this.loading = false;
    this.root = element("div", { class: "conversation" });
  }

  get empty() {
    return !this.root.childNodes.length && !this.loading;
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
      this.#views = turns.map((turn) => TurnView.kept(turn, this.#actions()));
      this.root.replaceChildren(...this.#views.map((view) => view.root));
      this.title = turns[0]?.question ?? "";
    } catch (error) {
      this.root.replaceChildren(loadFailure(error, () => this.load()));
    } finally {
      clearTimeout(waiting);
      this.loading = false;
    }
    this.#tell();
  }

  /** Ask a question and show its answer as it comes; in the place of a view and those after it. */
  async ask({ question, images }, choices = {}, replaced = null) {
    if (this.busy) return;
    const view = new TurnView({ question, images }, this.#actions(choices));
    const gone = replaced ? this.#views.splice(this.#views.indexOf(replaced)) : [];
    for (const each of gone) each.root.remove();
    this.#views.push(view);
    this.root.append(view.root);
    this.title = this.#views[0].question;
    view.begin();
    const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const body = { question, images, session_id: this.id, timezone, replaces: replaced?.id, ...choices };
    this.#stopping = new AbortController();
    this.#answering = this.#show(view, body, this.#stopping.signal);
    this.#tell();
    await this.#answering;
    this.#stopping = null;
    if (view.unanswered) this.#restore(gone, view, replaced);
    this.#tell();
  }

  /** Stop the answer that is being written. */
  async stop() {
    this.#stopping?.abort();
    await this.#answering;
    await stopAnswer(this.id).catch(() => {}); // Leaving has stopped it as well, a little later.
    this.#tell();
  }

  async #show(view, body, signal) {
    try {
      await this.#follow(view, body, signal);
    } catch (error) {
      if (signal.aborted) view.stop();
      else if (error instanceof ServiceError) view.fail({ message: error.message, retry_after: error.retryAfter });
      else {
        view.fail({ message: say("broken") });
        console.error(error);
      }
    }
  }

  async #follow(view, body, signal) {
    for await (const event of ask(body, signal)) {
      view.take(event);
      if (event.type === "end" || event.type === "error") return;
    }
    throw new ServiceError({ code: "cut_off", message: say("cutOff") });
  }

  /** What was to be replaced still counts where nothing came in its place. */
  #restore(gone, view, replaced) {
    view.inPlaceOf = replaced;
    for (const each of gone) view.root.before(each.root);
    this.#views.splice(-1, 0, ...gone);
  }

  /** What can be done with a turn. The last one is answered anew in its place, others behind all. */
  #actions(choices = {}) {
    const replaceable = (view) => {
      if (view !== this.#views.at(-1)) return null;
      return view.inPlaceOf ?? (view.id ? view : null);
    };
    const after = async (act) => {
      if (this.busy) await this.stop();
      act();
    };
    return {
      again: (view, route) =>
        after(() => this.ask(view.asked, route ? { ...choices, route } : choices, replaceable(view))),
      edit: (view, asked) => after(() => this.ask(asked, choices, view.id ? view : null)),
    };
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
