// The conversations at the side: new, open, delete.

import { deleteSession, listSessions } from "./api.js";
import { element, icon } from "./dom.js";
import { changeLanguage, label, say, words } from "./language.js";
import { themeButton } from "./theme.js";

const DAY = 24 * 60 * 60 * 1000;

/** Calls `open(id)`, `begin()` and `removed(id)`; `running` has the ids being answered. */
export class Sidebar {
  #sessions = [];
  #current = "";
  #loads = 0;

  constructor(root, { open, begin, removed, running }) {
    Object.assign(this, { open, begin, removed, running });
    this.list = element("nav");
    label(this.list, "sessions");
    const fresh = element("button", { class: "button new", type: "button", on: { click: begin } }, icon("plus"), words("newSession"));
    const close = label(element("button", { class: "quiet open", type: "button", on: { click: hideSidebar } }, icon("close")), "closeSidebar");
    root.append(
      element("div", { class: "brand" }, element("img", { src: new URL("../icon.svg", import.meta.url), alt: "" }), words("appName"), close),
      fresh,
      this.list,
      element("footer", {}, languageButton(), themeButton()),
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
    const order = ++this.#loads;
    // What was listed stays where it cannot be read; the badge tells about the history.
    const sessions = await listSessions().catch(() => this.#sessions);
    if (order !== this.#loads) return; // Asked for again meanwhile: the later answer counts.
    this.#sessions = sessions;
    this.#draw();
  }

  titleOf(id) {
    return this.#sessions.find((each) => each.session_id === id)?.title ?? "";
  }

  #draw() {
    const groups = Map.groupBy(this.#sessions, ({ last_active }) => age(new Date(last_active)));
    const shown = [...groups].flatMap(([key, sessions]) => [
      words(key, {}, "h2"),
      element("ul", {}, sessions.map((each) => this.#row(each))),
    ]);
    if (!shown.length) {
      const empty = words("noSessions", {}, "p");
      empty.className = "empty";
      shown.push(empty);
    }
    this.list.replaceChildren(...shown);
  }

  #row({ session_id: id, title }) {
    const current = id === this.#current;
    const link = element("a", { href: `/?session=${encodeURIComponent(id)}`, title, dir: "auto", "aria-current": current ? "page" : null }, title);
    link.addEventListener("click", (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey) return;
      event.preventDefault();
      hideSidebar();
      this.open(id);
    });
    const bin = label(element("button", { class: "quiet", type: "button" }, icon("bin")), "deleteSession", { title });
    bin.addEventListener("click", () => this.#delete(id, title));
    const data = { current: current ? "" : null, running: this.running.has(id) ? "" : null };
    return element("li", { class: "session", data }, link, bin);
  }

  async #delete(id, title) {
    if (!(await confirmed(title))) return;
    await this.removed(id);
    await deleteSession(id).catch(() => {}); // The list shows whether it is gone.
    await this.load();
  }
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

function confirmed(title) {
  const { promise, resolve } = Promise.withResolvers();
  const choice = (key, style) => element("button", { class: `button ${style}`, value: key }, words(key));
  const form = element("form", { method: "dialog" },
    element("h2", {}, say("deleteTitle")),
    element("p", {}, say("deleteText", { title })),
    element("div", { class: "choices" }, choice("cancel", ""), choice("delete", "danger")),
  );
  const dialog = element("dialog", { class: "dialog", "aria-label": say("deleteTitle") }, form);
  dialog.addEventListener("close", () => {
    dialog.remove();
    resolve(dialog.returnValue === "delete");
  });
  document.body.append(dialog);
  dialog.showModal();
  return promise;
}
