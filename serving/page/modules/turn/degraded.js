// What does not work as it should: for everybody in plain words, and the reason for who mends it.

import { element } from "../controls/dom.js";
import { icon } from "../controls/icons.js";
import { words } from "../words/language.js";

const PARTS = {
  history: "degradedHistory",
  knowledge: "degradedKnowledge",
  model: "degradedModel",
  router: "degradedRouter",
  assistants: "degradedAssistants",
  images: "degradedImages",
  tools: "degradedTools",
  rewriting: "degradedRewriting",
};

/** Return what is said of a part, and the reason as the service gives it. */
export function degradedWords({ part, reason }) {
  const told = words(PARTS[part] ?? "degradedService");
  const details = reason && element("details", {}, words("details", {}, "summary"), element("span", {}, reason));
  return element("div", { class: "degraded" }, told, details || null);
}

/** Return a note below an answer. */
export function degradedNote(degradation) {
  return element("div", { class: "note" }, icon("alert"), degradedWords(degradation));
}
