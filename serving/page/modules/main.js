// Puts the page together: which conversation is shown, and what its controls do.

import { closeCard } from "./citations.js";
import { Composer } from "./composer.js";
import { Conversation } from "./conversation.js";
import { element, icon } from "./dom.js";
import { healthBadge } from "./health.js";
import { applyLanguage, label, say } from "./language.js";
import { AssistantPicker } from "./picker.js";
import { Scroller } from "./scrolling.js";
import { hideSidebar, showSidebar, Sidebar } from "./sidebar.js";
import { welcome } from "./welcome.js";

const scroll = document.getElementById("scroll");
const title = element("h1", { dir: "auto" });
const scroller = new Scroller(scroll);
const picker = new AssistantPicker();
const composer = new Composer({ send: askHere, stop: () => shown.stop(), picker: picker.root });
// Conversations that are being answered go on while another one is shown.
const running = new Map();
const sidebar = new Sidebar(document.getElementById("sidebar"), { open, begin, removed, running });
let shown = null;

function askHere(question, images = []) {
  const choices = picker.names ? { assistants: picker.names } : {};
  shown.ask({ question, images }, choices);
}

async function open(id, { remember = true } = {}) {
  closeCard();
  const conversation = running.get(id) ?? made(id);
  const known = running.has(id);
  shown = conversation;
  sidebar.current = id;
  if (remember) history.pushState({}, "", `/?session=${encodeURIComponent(id)}`);
  scroll.replaceChildren(conversation.root);
  refresh();
  if (!known) await conversation.load();
  if (shown === conversation) scroller.toLastTurn();
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

function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(12));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
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
  if (event.key === "Escape" && hideSidebar()) menu.focus();
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
