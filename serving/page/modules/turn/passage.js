// What a passage is shown with, wherever that is.

import { element } from "../controls/dom.js";

/** Return a place in a document as people read it. */
export const readable = (location) => location?.replaceAll(" > ", " › ");

/** Return a score as whole percents. */
export const percentOf = (score) => Math.round(Math.min(Math.max(score, 0), 1) * 100);

/** Return a score as a small bar. */
export function meter(score) {
  const share = element("i");
  share.style.width = `${percentOf(score)}%`;
  return element("span", { class: "meter", "aria-hidden": "true" }, share);
}
