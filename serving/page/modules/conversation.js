// A conversation: its turns on the page, and the answer that is being written.

import { element } from "./controls/dom.js";
import { MOST_TURNS, readSession, stopAnswer } from "./service/api.js";
import { ServiceError } from "./service/http.js";
import { ask, resume } from "./service/stream.js";
import { failureNote } from "./turn/failure.js";
import { TurnView } from "./turn/turn-view.js";
import { say, words } from "./words/language.js";

/** Sends `loaded` when it is shown, and `changed` when an answer begins or ends. */
export class Conversation extends EventTarget {
  #reading = null;
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
    return this.#reading !== null;
  }

  /** Show what was said before, and go on with an answer that is being written. */
  async load() {
    this.loading = true;
    const waiting = setTimeout(() => this.root.append(skeleton()), 200);
    const line = this.#line();
    try {
      // In this order: what ends in between is in the history then.
      const events = await resume(this.id, line);
      const turns = await readSession(this.id);
      // Something may have been asked meanwhile, and its answer may be among what was read.
      const kept = turns.filter(({ id }) => !this.#views.some((view) => view.id === id));
      this.#views = [...kept.map((turn) => TurnView.kept(turn, this.#actions())), ...this.#views];
      const more = turns.length === MOST_TURNS ? [words("earlierTurns", { most: MOST_TURNS }, "p")] : [];
      this.root.replaceChildren(...more, ...this.#views.map((view) => view.root));
      this.title = this.#views[0]?.question ?? "";
      if (!events || this.busy) line.reading.abort();
      else this.#follow(this.#begin({ question: "" }), line, events);
    } catch (error) {
      this.root.replaceChildren(failureNote(error, { title: words("loadFailed"), retry: () => this.load() }));
    } finally {
      clearTimeout(waiting);
      this.loading = false;
    }
    this.#tell("loaded");
  }

  /** Ask a question and show its answer as it comes; in the place of a view and those after it. */
  async ask(asked, choices = {}, replaced = null) {
    if (this.busy) return;
    const line = this.#line();
    const gone = replaced ? this.#remove(replaced) : [];
    const view = this.#begin(asked, choices);
    const timezone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const body = { ...asked, session_id: this.id, timezone, replaces: replaced?.id, ...choices };
    await this.#follow(view, line, ask(body, line));
    if (view.unanswered) this.#restore(gone, view, replaced);
    this.#tell();
  }

  /** Stop the answer that is being written. */
  async stop() {
    const view = this.#views.at(-1);
    this.#reading?.abort();
    await this.#answering;
    try {
      await stopAnswer(this.id);
    } catch (error) {
      if (error.code !== "not_found") view?.fail(error); // else it had not begun
    }
    this.#tell();
  }

  /** Return the turn's element, if it is among those that are shown. */
  elementOf(turn) {
    return this.#views.find(({ id }) => id === turn)?.root ?? null;
  }

  #line() {
    const reading = new AbortController();
    return { reading, signal: reading.signal, lost: (away) => this.#views.at(-1)?.lost(away) };
  }

  #begin({ question, images }, choices = {}) {
    const view = new TurnView({ question, images }, this.#actions(choices));
    this.#views.push(view);
    this.root.append(view.root);
    this.title = this.#views[0].question || this.title;
    view.begin();
    return view;
  }

  async #follow(view, { reading, signal }, events) {
    this.#reading = reading;
    this.#answering = this.#show(view, signal, events);
    this.#tell();
    await this.#answering;
    this.#reading = null;
    this.title = this.#views[0]?.question || this.title;
    this.#tell();
  }

  async #show(view, signal, coming) {
    try {
      for await (const event of await coming) {
        if (event.type === "metadata") this.#removeSame(view, event.data);
        view.take(event);
      }
    } catch (error) {
      if (signal.aborted) view.stop();
      else if (error instanceof ServiceError) view.fail(error);
      else {
        view.fail({ message: say("broken") });
        console.error(error);
      }
    }
  }

  /** An answer that was taken up again takes the place of what the history told meanwhile. */
  #removeSame(view, { turn_id: id, replaces }) {
    const same = this.#views.find((each) => each !== view && (each.id === id || each.id === replaces));
    if (!same) return;
    this.#remove(same);
    this.#views.push(view);
    this.root.append(view.root);
  }

  #remove(first) {
    const gone = this.#views.splice(this.#views.indexOf(first));
    for (const each of gone) each.root.remove();
    return gone;
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
      session: this.id,
      again: (view, route) =>
        after(() => this.ask(view.asked, route ? { ...choices, route } : choices, replaceable(view))),
      edit: (view, asked) => after(() => this.ask(asked, chosenFor(view, asked, choices), view.id ? view : null)),
    };
  }

  #tell(what = "changed") {
    this.dispatchEvent(new Event(what));
  }
}

/** A route was chosen for one question; another one in its place is routed anew. */
function chosenFor({ question }, asked, { route, ...others }) {
  return asked.question === question ? { ...others, route } : others;
}

function skeleton() {
  const lines = Array.from({ length: 4 }, () => element("div", { class: "skeleton" }));
  return element("div", { "aria-hidden": "true" }, lines);
}
