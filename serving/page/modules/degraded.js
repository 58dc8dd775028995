// What does not work as it should, in plain words.

import { element, icon } from "./dom.js";
import { words } from "./language.js";

const PARTS = {
  history: "degradedHistory",
  knowledge: "degradedKnowledge",
  model: "degradedModel",
  router: "degradedRouter",
  assistants: "degradedAssistants",
  images: "degradedImages",
};

/** Return what is said of a part: its name in words, and the reason as the service gives it. */
export function degradedWords({ part, reason }) {
  const told = words(PARTS[part] ?? "degraded");
  return element("span", {}, told, reason ? `: ${reason}` : "");
}

/** Return a note below an answer. */
export function degradedNote(degradation) {
  return element("p", { class: "note" }, icon("alert"), degradedWords(degradation));
}
