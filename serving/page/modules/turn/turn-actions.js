// What can be done with an answer.

import { copyText } from "../controls/copying.js";
import { element } from "../controls/dom.js";
import { icon } from "../controls/icons.js";
import { reveal } from "../scrolling.js";
import { words } from "../words/language.js";
import { feedbackButtons } from "./feedback.js";
import { whyPanel } from "./why.js";

/** Return the buttons, and below them what they open; `again` where nothing else offers that. */
export function turnActions(view, { answer, feedback, again: offered }) {
  const more = element("div");
  const copy = action("copy", () => copyText(answer, copy));
  const again = action("again", () => view.again());
  const why = action("why", () => {
    const present = more.querySelector(".why");
    if (present) present.remove();
    else {
      const panel = whyPanel(view.session, view.id, reveal);
      more.append(panel);
      reveal(panel);
    }
    why.setAttribute("aria-expanded", String(!present));
  });
  why.setAttribute("aria-expanded", "false");
  const known = Boolean(view.id);
  const thumbs = answer && known ? feedbackButtons(view, feedback, more) : [];
  const row = element("div", { class: "actions" }, answer ? copy : null, offered ? again : null, known ? why : null, thumbs);
  return element("div", {}, row.hasChildNodes() ? row : null, more);
}

function action(name, act) {
  return element("button", { class: "quiet", type: "button", data: { action: name }, on: { click: act } }, icon(name), words(name));
}
