// The badge that says, in plain words, what does not work as it should.

import { element } from "./controls/dom.js";
import { icon } from "./controls/icons.js";
import { menuButton } from "./controls/menu.js";
import { readHealth } from "./service/api.js";
import { degradedWords } from "./turn/degraded.js";
import { words } from "./words/language.js";

const EVERY = 60_000;

/** Return the badge; it is there only while something is degraded. */
export function healthBadge() {
  let degraded = [];
  const button = element("button", { class: "badge", type: "button" }, icon("alert"), words("degraded"));
  const frame = menuButton(button, () => degraded.map(degradedWords));
  const check = async () => {
    if (document.hidden) return;
    try {
      degraded = Object.entries((await readHealth()).degraded ?? {}).map(([part, reason]) => ({ part, reason }));
    } catch (error) {
      degraded = [{ part: "service", reason: error.message }];
    }
    frame.hidden = !degraded.length;
  };
  frame.hidden = true;
  check();
  setInterval(check, EVERY);
  document.addEventListener("visibilitychange", check);
  for (const event of ["turnended", "signedin"]) document.addEventListener(event, check);
  return frame;
}
