// The quiet line above an answer: what is being done, then how it was answered.

import { element, icon } from "./dom.js";
import { say, words } from "./language.js";

const STAGES = new Set(["loading", "routing", "rewriting", "answering"]);

/** Return the line for work in progress. */
export function stageLine({ name, detail }) {
  let told = words("routing");
  if (name === "searching") told = words(detail ? "searching" : "searchingPlain", { detail });
  else if (STAGES.has(name)) told = words(name);
  return [element("span", { class: "pulse" }), told];
}

/** Return the line for an answer: its route, and a button for the other one. */
export function routeLine(facts, askAgain) {
  if (!facts.intent) return [];
  const searched = facts.intent === "knowledge_base";
  const told = searched ? searchedWords(facts) : words("chatted");
  const other = element("button", { class: "plain", type: "button" }, words(searched ? "chatInstead" : "searchInstead"));
  other.addEventListener("click", () => askAgain(searched ? "general_chat" : "knowledge_base"));
  return [icon(searched ? "book" : "talk"), told, other];
}

/** A question that was searched for as it was asked is not repeated. */
function searchedWords({ assistants = [], original_query: asked, enhanced_query: query, degraded = [] }) {
  if (!assistants.length && degraded.some(({ part }) => part === "knowledge")) return words("notSearched");
  const names = assistants.join(say("comma"));
  const rewritten = query && query !== asked ? "For" : "";
  return words(names ? `searched${rewritten}` : `searchedAll${rewritten}`, { assistants: names, query });
}

/** Return the facts behind an answer, as a list. */
export function whyList(facts, usage = {}) {
  const rows = [];
  const add = (key, value) => {
    if (value) rows.push(words(key, {}, "dt"), element("dd", {}, value));
  };
  const searched = facts.intent === "knowledge_base";
  add("route", facts.intent && words(searched ? "routeKnowledge" : "routeChat"));
  add("reason", facts.reason);
  add("query", searched && facts.enhanced_query);
  add("asked", facts.assistants?.join(", "));
  add("model", usage.model);
  add("firstToken", milliseconds(usage.first_token_ms));
  add("total", milliseconds(usage.total_ms));
  if (usage.input_tokens || usage.output_tokens) {
    const values = { input: usage.input_tokens ?? "?", output: usage.output_tokens ?? "?" };
    add("tokens", words("tokensValue", values));
  }
  for (const { part, reason } of facts.degraded ?? []) add("limited", `${part}: ${reason}`);
  return element("div", { class: "why" }, element("dl", {}, rows));
}

function milliseconds(value) {
  if (value == null) return "";
  return value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(1)} s`;
}
