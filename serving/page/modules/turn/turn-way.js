// The quiet line above an answer: what is being done, then how it was answered.

import { element } from "../controls/dom.js";
import { icon } from "../controls/icons.js";
import { say, words } from "../words/language.js";

const STAGES = new Set(["loading", "waiting", "routing", "rewriting", "answering"]);

/** Return the line for work in progress. */
export function stageLine({ name, detail }) {
  let told = words("routing");
  if (name === "searching") told = words(detail ? "searching" : "searchingPlain", { detail });
  else if (name === "tool") told = words("usingTool", { detail });
  else if (STAGES.has(name)) told = words(name);
  return [pulse(), told];
}

/** Return the line for a connection that broke while the answer is written. */
export const lostLine = () => [pulse(), words("lost")];

/** Return the line for an answer: its route, and a button for the other one. */
export function routeLine(facts, askAgain, { working = false } = {}) {
  if (!facts.intent) return [];
  const searched = facts.intent === "knowledge_base";
  const told = searched ? searchedWords(facts) : words("chatted");
  const other = element("button", { class: "plain", type: "button" }, words(searched ? "chatInstead" : "searchInstead"));
  other.addEventListener("click", () => askAgain(searched ? "general_chat" : "knowledge_base"));
  return [working ? pulse() : icon(searched ? "book" : "talk"), told, other];
}

/** A question that was searched for as it was asked is not repeated. */
function searchedWords({ assistants = [], original_query: asked, enhanced_query: query, outcome }) {
  if (outcome === "unavailable" || outcome === "forbidden") return words("notSearched");
  const names = assistants.join(say("comma"));
  const rewritten = query && query !== asked ? "For" : "";
  return words(names ? `searched${rewritten}` : `searchedAll${rewritten}`, { assistants: names, query });
}

const pulse = () => element("span", { class: "pulse" });
