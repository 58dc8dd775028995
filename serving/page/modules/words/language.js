// The language of the page: chosen from the browser, changed without a reload.

import { element } from "../controls/dom.js";
import { read, write } from "../controls/storage.js";
import { ENGLISH } from "./en.js";
import { FAILURES } from "./failures-zh.js";
import { CHINESE } from "./zh.js";

// What failed is told in English by the service itself.
const TABLES = { en: ENGLISH, zh: { ...CHINESE, ...FAILURES } };

let current = TABLES[read("language")] ? read("language") : preferred();

function preferred() {
  const wanted = navigator.languages?.[0] ?? navigator.language ?? "en";
  return wanted.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export const language = () => current;

/** Return the words of the current language, with values put in their places; none stays open. */
export function say(key, values = {}) {
  const known = TABLES[current][key];
  if (!known && values.otherwise) return values.otherwise; // words of others, with no places in them
  const text = known ?? TABLES.en[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (_, name) => {
    if (values[name] == null) console.error(`“${key}” was said without its ${name}.`);
    return values[name] ?? "";
  });
}

/** Return an element whose text follows the language. */
export function words(key, values = {}, tag = "span") {
  const made = element(tag, { data: { words: key, values: JSON.stringify(values) } });
  made.textContent = say(key, values);
  return made;
}

/** Return what the service said of a failure, in the language of the page as far as it is known. */
export function failureWords({ code, message }) {
  return words(`failure_${code}`, { otherwise: message });
}

/** Give an element a name for screen readers, and a tip, that follow the language. */
export function label(target, key, values = {}) {
  Object.assign(target.dataset, { label: key, values: JSON.stringify(values) });
  applyLabel(target);
  return target;
}

/** Change the language and everything that has been said in the other one. */
export function changeLanguage() {
  current = current === "zh" ? "en" : "zh";
  write("language", current);
  applyLanguage();
  document.dispatchEvent(new Event("languagechange"));
}

/** Fill what `index.html` left to be said. */
export function applyLanguage() {
  document.documentElement.lang = current === "zh" ? "zh-CN" : "en";
  for (const target of document.querySelectorAll("[data-words]")) {
    target.textContent = say(target.dataset.words, values(target));
  }
  for (const target of document.querySelectorAll("[data-label]")) applyLabel(target);
}

const PLACEHOLDERS = { question: "placeholder", edit: "placeholder" };

function applyLabel(target) {
  const key = target.dataset.label;
  const text = say(key, values(target));
  target.setAttribute("aria-label", text);
  if (target.localName === "button") target.title = text;
  if (target.matches("textarea, [type=search]")) target.placeholder = PLACEHOLDERS[key] ? say(PLACEHOLDERS[key]) : text;
}

const values = (target) => JSON.parse(target.dataset.values ?? "{}");
