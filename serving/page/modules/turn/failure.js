// What went wrong, in a sentence, and the way to try again.

import { element } from "../controls/dom.js";
import { icon } from "../controls/icons.js";
import { failureWords, words } from "../words/language.js";

/** Whether trying again may help: the note offers it then. */
export const mayHelp = ({ retryable }) => retryable !== false;

/** Return the note. Where the service names seconds, the button waits for them. */
export function failureNote(failure, { title = null, retry }) {
  const told = failure.message ? failureWords(failure) : words("interrupted");
  const button = element("button", { class: "button", type: "button", on: { click: retry } }, words("tryAgain"));
  if (failure.retry_after) countDown(button, Math.ceil(failure.retry_after));
  return element("div", { class: "failure", role: "alert" }, icon("alert"), element("span", {}, title, title ? " " : null, told), mayHelp(failure) ? button : null);
}

function countDown(button, seconds) {
  button.disabled = seconds > 0;
  button.replaceChildren(seconds > 0 ? words("retryIn", { seconds }) : words("tryAgain"));
  if (seconds > 0) setTimeout(() => countDown(button, seconds - 1), 1000);
}
