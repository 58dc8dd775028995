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

/** Return the notes below an answer, one for each part, whatever number of reasons it had. */
export function degradedNotes(degradations) {
  const reasons = new Map();
  for (const { part, reason } of degradations) reasons.set(part, [...(reasons.get(part) ?? []), reason]);
  return [...reasons].map(([part, all]) => {
    const told = degradedWords({ part, reason: all.filter(Boolean).join("\n") });
    return element("div", { class: "note" }, icon("alert"), told);
  });
}
