// The conversations at the side: new, search, open; below them what concerns the whole page.

import { become, element } from "../controls/dom.js";
import { icon } from "../controls/icons.js";
import { accountRow } from "../service/account.js";
import { listSessions } from "../service/api.js";
import { themeButton } from "../theme.js";
import { changeLanguage, failureWords, label, words } from "../words/language.js";
import { importButton } from "./archive.js";
import { sessionRow } from "./session-row.js";
import { SessionSearch } from "./session-search.js";

const DAY = 24 * 60 * 60 * 1000;

/**
 * Calls `open(id, {turn})`, `begin()`, `removed(id)`, and `listed()` when the titles are known;
 * `running` has the ids being answered.
 */
export class Sidebar {
  #sessions = [];
  #current = "";
  #loads = 0;
  #wanted = 1; // how many are listed at least, where there are so many
  #older = false;
  #unread = true;
  #failure = null;

  constructor(root, { open, begin, removed, listed, running }) {
    Object.assign(this, { running, listed });
    this.act = {
      open: (id, place) => {
        hideSidebar();
        open(id, place);
      },
      removed,
      changed: () => this.load(),
    };
    this.list = element("nav");
    label(this.list, "sessions");
    this.search = new SessionSearch({ sessions: () => this.#sessions, changed: () => this.#draw(), open: this.act.open });
    const fresh = element("button", { class: "button new", type: "button", on: { click: begin } }, icon("plus"), words("newSession"));
    const close = label(element("button", { class: "quiet open", type: "button", on: { click: hideSidebar } }, icon("close")), "closeSidebar");
    this.told = element("p", { class: "refused", role: "alert" });
    root.append(
      element("div", { class: "brand" }, element("img", { src: new URL("../../icon.svg", import.meta.url), alt: "" }), words("appName"), close),
      fresh,
      this.search.root,
      this.list,
      this.told,
      accountRow(),
      element("footer", {}, languageButton(), importButton(this.act, this.told), themeButton()),
    );
    document.addEventListener("languagechange", () => this.#draw());
    document.getElementById("backdrop").addEventListener("click", hideSidebar);
  }

  /** Mark the conversation that is shown. */
  set current(id) {
    this.#current = id;
    this.#draw();
  }

  /** Read the conversations again. */
  async load() {
    this.#draw();
    const order = ++this.#loads;
    let listed = null;
    let failure = null;
    try {
      listed = await listSessions(this.#wanted);
    } catch (error) {
      failure = error;
    }
    if (order !== this.#loads) return; // Asked for again meanwhile: the later answer counts.
    this.#failure = failure;
    if (listed) {
      this.#sessions = listed.sessions;
      this.#older = listed.older;
      this.#unread = false;
    }
    this.#draw();
    this.listed();
  }

  titleOf(id) {
    return this.#sessions.find((each) => each.session_id === id)?.title ?? "";
  }

  #draw() {
    const shown = element("nav", {}, this.search.results() ?? this.#groups());
    const held = document.activeElement?.closest(".session")?.dataset.id;
    become(this.list, shown); // Rows that did not change keep the keyboard and their open menu.
    if (!held || document.activeElement !== document.body) return;
    this.list.querySelector(`[data-id="${CSS.escape(held)}"] a`)?.focus({ preventScroll: true });
  }

  #groups() {
    const listed = [...this.#begun(), ...this.#sessions];
    if (!listed.length && !this.#unread) return [emptyList()];
    const groups = Map.groupBy(listed, ({ last_active }) => age(new Date(last_active)));
    return [...groups].flatMap(([key, sessions]) => [
      element("h2", { data: { fixed: key } }, words(key)),
      element("ul", {}, sessions.map((each) => this.#row(each))),
    ]).concat(this.#lacking ? [this.#notLoaded()] : this.#older ? [this.#olderButton()] : []);
  }

  /** Whether what was asked for could not be read. What was read before stays as it is. */
  get #lacking() {
    return this.#failure && (this.#unread || this.#sessions.length < this.#wanted);
  }

  #notLoaded() {
    const button = element("button", { class: "plain older", type: "button" }, words("tryAgain"));
    button.addEventListener("click", () => {
      this.#failure = null;
      this.load();
    });
    const told = element("p", { class: "empty" }, words("sessionsNotLoaded"), " ", failureWords(this.#failure));
    return element("div", { data: { fixed: `failed-${this.#loads}` } }, told, button);
  }

  #olderButton() {
    const button = element("button", { class: "plain older", type: "button" }, words("olderSessions"));
    button.addEventListener("click", () => {
      this.#wanted = this.#sessions.length + 1;
      this.load();
    });
    return button;
  }

  /** Return the conversations whose first answer is being written: nothing is kept of them yet. */
  #begun() {
    const known = new Set(this.#sessions.map(({ session_id: id }) => id));
    const begun = [...this.running.values()].filter(({ id, title }) => title && !known.has(id));
    return begun.map(({ id, title }) => ({ session_id: id, title, last_active: new Date() }));
  }

  #row(session) {
    const { session_id: id } = session;
    return sessionRow(session, { current: id === this.#current, running: this.running.has(id), act: this.act });
  }
}

function emptyList() {
  const empty = words("noSessions", {}, "p");
  empty.className = "empty";
  return empty;
}

/** Show the conversations on a narrow screen. */
export function showSidebar() {
  document.querySelector(".shell").dataset.sidebar = "";
  document.querySelector(".sidebar .new").focus();
}

/** Hide them again, and return whether they were shown over the page. */
export function hideSidebar() {
  const { dataset } = document.querySelector(".shell");
  const shown = "sidebar" in dataset;
  delete dataset.sidebar;
  return shown;
}

function languageButton() {
  const button = element("button", { class: "quiet", type: "button", on: { click: changeLanguage } }, "中 / En");
  return label(button, "toOther");
}

function age(when) {
  const midnight = new Date().setHours(0, 0, 0, 0);
  if (when >= midnight) return "today";
  if (when >= midnight - DAY) return "yesterday";
  return when >= midnight - 7 * DAY ? "week" : "earlier";
}
