// Puts the page together: which conversation is shown, and what its controls do.

import { Composer } from "./composer/composer.js";
import { AssistantPicker } from "./composer/picker.js";
import { element } from "./controls/dom.js";
import { icon } from "./controls/icons.js";
import { composing } from "./controls/keyboard.js";
import { Conversation } from "./conversation.js";
import { healthBadge } from "./health.js";
import { Scroller } from "./scrolling.js";
import { newId } from "./service/ids.js";
import { listenForSignIn } from "./service/sign-in.js";
import { hideSidebar, showSidebar, Sidebar } from "./sessions/sidebar.js";
import { closeCard } from "./turn/citations.js";
import { welcome } from "./welcome.js";
import { applyLanguage, label, say } from "./words/language.js";

let shown = null;
listenForSignIn();
const scroll = document.getElementById("scroll");
const title = element("h1", { dir: "auto" });
const scroller = new Scroller(scroll);
const picker = new AssistantPicker();
const composer = new Composer({ send: askHere, stop: () => shown.stop(), picker: picker.root });
// Conversations that are being answered go on while another one is shown.
const running = new Map();
const sidebar = new Sidebar(document.getElementById("sidebar"), { open, begin, removed, listed: refresh, running });

function askHere(question, images = []) {
  const choices = picker.names ? { assistants: picker.names } : {};
  shown.ask({ question, images }, choices);
}

async function open(id, { remember = true, turn = null } = {}) {
  closeCard();
  const known = shown?.id === id || running.has(id);
  const conversation = shown?.id === id ? shown : (running.get(id) ?? made(id));
  shown = conversation;
  sidebar.current = id;
  if (remember) history.pushState({}, "", `/?session=${encodeURIComponent(id)}`);
  scroll.replaceChildren(conversation.root);
  const loaded = known ? null : conversation.load();
  refresh();
  await loaded;
  if (shown !== conversation) return;
  const found = conversation.elementOf(turn);
  if (found) scroller.toTurn(found);
  else scroller.toLastTurn();
  composer.focus();
}

function begin({ remember = true } = {}) {
  closeCard();
  hideSidebar();
  if (remember && shown.empty) return composer.focus();
  shown = made(newId());
  sidebar.current = shown.id;
  if (remember) history.pushState({}, "", "/");
  refresh();
  composer.focus();
}

function made(id) {
  const conversation = new Conversation(id);
  conversation.addEventListener("changed", () => changed(conversation));
  conversation.addEventListener("loaded", () => conversation === shown && refresh());
  return conversation;
}

function changed(conversation) {
  const { id, busy } = conversation;
  const ended = running.has(id) && !busy;
  if (busy) running.set(id, conversation);
  else running.delete(id);
  if (ended) document.dispatchEvent(new Event("turnended"));
  if (conversation === shown) {
    if (busy) history.replaceState({}, "", `/?session=${encodeURIComponent(id)}`);
    refresh();
    if (busy) scroller.toLastTurn();
  }
  sidebar.load();
}

/** Bring the page in line with the conversation that is shown. */
function refresh() {
  if (!shown) return;
  composer.busy = shown.busy;
  const content = shown.empty ? null : shown.root;
  if (content && content.parentNode !== scroll) scroll.replaceChildren(content);
  if (!content && !scroll.querySelector(".welcome")) scroll.replaceChildren(welcome(askHere));
  const name = sidebar.titleOf(shown.id) || shown.title;
  title.textContent = name || say("appName");
  title.classList.toggle("unseen", !name);
  document.title = name ? `${name.slice(0, 80)} · ${say("appName")}` : say("appName");
}

async function removed(id) {
  await running.get(id)?.stop();
  if (shown.id === id) begin();
}

function openAddress() {
  const id = new URLSearchParams(location.search).get("session");
  if (id) open(id, { remember: false });
  else begin({ remember: false });
}

const menu = label(element("button", { class: "quiet open", type: "button", on: { click: showSidebar } }, icon("menu")), "openSidebar");
document.getElementById("bar").append(menu, title, healthBadge());
document.getElementById("dock").append(scroller.button, composer.root);
document.addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "Escape" && !composing(event)) {
    if (hideSidebar()) menu.focus();
    else if (shown.busy) shown.stop();
  }
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    showSidebar();
    sidebar.search.field.focus();
  }
});
document.addEventListener("languagechange", () => {
  if (scroll.querySelector(".welcome")) scroll.replaceChildren(welcome(askHere));
  refresh();
});
addEventListener("popstate", openAddress);
applyLanguage();
picker.load();
composer.attachments.load();
sidebar.load();
openAddress();
