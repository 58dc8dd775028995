// How long each step of an answer took.

import { element } from "../controls/dom.js";
import { words } from "../words/language.js";

const STEPS = {
  load_history: "stepHistory",
  route: "stepRoute",
  enhance_query: "stepRewrite",
  retrieve: "stepSearch",
  respond: "stepAnswer",
  answer: "stepAnswer",
  save_turn: "stepSave",
};
const SHORTEST = 1; // Milliseconds that are worth a bar.

/** Return a bar for each step, as long as its share of the longest. */
export function timeBars({ timings = {} }) {
  const steps = Object.entries(timings).filter(([, time]) => time >= SHORTEST);
  if (!steps.length) return null;
  const longest = Math.max(...steps.map(([, time]) => time));
  const rows = steps.flatMap(([step, time]) => {
    const bar = element("i");
    bar.style.width = `${(time / longest) * 100}%`;
    return [
      element("dt", {}, STEPS[step] ? words(STEPS[step]) : step.replace("tool ", "")),
      element("dd", {}, element("span", { class: "bar-of-time", "aria-hidden": "true" }, bar), element("span", {}, milliseconds(time))),
    ];
  });
  return element("dl", { class: "times" }, rows);
}

/** Return a time for people; nothing where it is not known. */
export function milliseconds(value) {
  if (value == null) return "";
  return value < 1000 ? `${Math.round(value)} ms` : `${(value / 1000).toFixed(1)} s`;
}
