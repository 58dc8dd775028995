// The badge that says, in plain words, what does not work as it should.

import { readHealth } from "./api.js";
import { degradedWords } from "./degraded.js";
import { element, icon } from "./dom.js";
import { words } from "./language.js";
import { menuButton } from "./menu.js";

const EVERY = 60_000;

/** Return the badge; it is there only while something is degraded. */
export function healthBadge() {
  let degraded = [];
  const text = element("span");
  const button = element("button", { class: "badge", type: "button" }, icon("alert"), text);
  const frame = menuButton(button, () => degraded.map((each) => element("p", {}, degradedWords(each))));
  const check = async () => {
    if (document.hidden) return;
    try {
      degraded = Object.entries((await readHealth()).degraded).map(([part, reason]) => ({ part, reason }));
      text.replaceChildren(words("degraded"));
    } catch (error) {
      degraded = [{ part: "service", reason: error.message }];
      text.replaceChildren(words("degraded"));
    }
    frame.hidden = !degraded.length;
  };
  frame.hidden = true;
  check();
  setInterval(check, EVERY);
  document.addEventListener("visibilitychange", check);
  document.addEventListener("turnended", check);
  return frame;
}
