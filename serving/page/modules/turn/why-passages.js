// The passages that were found for an answer: which were cited, which had no room.

import { element } from "../controls/dom.js";
import { words } from "../words/language.js";
import { documentLink } from "./citations.js";
import { meter, readable } from "./passage.js";

/** Return the section with the passages, if any were looked for. */
export function passageList({ intent, passages, citations = [], cut = {}, left_out: lost = [] }) {
  if (intent !== "knowledge_base") return [];
  const title = words("whyPassages", {}, "h4");
  if (lost.includes("passages")) return [element("section", {}, title, words("passagesLost", {}, "p"))];
  if (!passages?.length) return [element("section", {}, title, words("noPassages", {}, "p"))];
  const cited = new Set((citations ?? []).map(({ number }) => number));
  const shown = passages.length - (cut.passages ?? 0);
  const rows = passages.map((passage, index) => row(passage, index + 1, { cited: cited.has(index + 1), shown: index < shown }));
  return [element("section", {}, title, words("passagesFound", { found: passages.length, cited: cited.size }, "p"), element("ol", {}, rows))];
}

function row({ document: name, location, assistant, text, score, url }, number, { cited, shown }) {
  const place = [readable(location) || null, assistant].filter(Boolean).join(" · ");
  const state = cited ? words("cited") : !shown ? words("noRoom") : null;
  const head = element(
    "summary",
    {},
    element("b", { class: cited ? "cited" : null }, String(number)),
    element("span", { dir: "auto" }, name, " ", element("small", {}, place)),
    state && element("small", { class: "state" }, state),
    element("span", { class: "score" }, meter(score), score.toFixed(2)),
  );
  const body = element("div", {}, element("p", { dir: "auto" }, text), documentLink(url));
  return element("li", {}, element("details", {}, head, body));
}
