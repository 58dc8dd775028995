// A thumb up or down for an answer, and a comment.

import { announce } from "../controls/announcer.js";
import { element } from "../controls/dom.js";
import { icon } from "../controls/icons.js";
import { composing } from "../controls/keyboard.js";
import { reveal } from "../scrolling.js";
import { giveFeedback } from "../service/api.js";
import { failureWords, label, say, words } from "../words/language.js";

const NAMES = { up: "goodAnswer", down: "badAnswer" };

/** Return the two thumbs; the form for a comment opens in `place`. */
export function feedbackButtons({ session, id }, given, place) {
  let kept = { thumb: null, comment: null, ...given };
  const told = element("p", { class: "refused", role: "alert" });
  const thumbs = Object.entries(NAMES).map(([thumb, name]) => {
    const button = label(element("button", { class: "quiet thumb", type: "button" }, icon(name)), name);
    button.addEventListener("click", async () => {
      const taken = kept.thumb === thumb;
      place.querySelector(".comment")?.remove();
      const done = await give(taken ? { thumb: null, comment: null } : { ...kept, thumb });
      if (done && !taken) open(form());
    });
    return [thumb, button];
  });
  const open = (shown) => {
    place.prepend(shown);
    reveal(shown);
  };
  const show = () => {
    for (const [thumb, button] of thumbs) button.setAttribute("aria-pressed", String(kept.thumb === thumb));
  };
  const give = async (feedback) => {
    const before = kept;
    kept = feedback;
    show(); // At once; taken back where the service does not take it.
    told.remove();
    try {
      await giveFeedback(session, id, feedback);
      announce(say("feedbackKept"));
      return true;
    } catch (error) {
      kept = before;
      show();
      told.replaceChildren(words("feedbackLost"), " ", failureWords(error));
      open(told);
      return false;
    }
  };
  const form = () =>
    commentForm(kept, async (comment) => {
      if (await give({ ...kept, comment: comment || null })) {
        const thanks = words("feedbackKept", {}, "p");
        thanks.className = "comment stopped";
        place.querySelector(".comment")?.replaceWith(thanks);
      }
    });
  show();
  return thumbs.map(([, button]) => button);
}

function commentForm({ thumb, comment }, send) {
  const field = label(element("textarea", { rows: "2", maxlength: "2000", dir: "auto" }), thumb === "up" ? "commentGood" : "comment");
  field.value = comment ?? "";
  const close = element("button", { class: "button", type: "button" }, words("notNow"));
  const go = element("button", { class: "button strong", type: "submit" }, words("send"));
  const form = element("form", { class: "comment editor" }, field, element("div", { class: "choices" }, close, go));
  close.addEventListener("click", () => form.remove());
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(field.value.trim());
  });
  field.addEventListener("keydown", (event) => {
    if (composing(event)) return;
    if (event.key === "Escape") {
      event.stopPropagation(); // An answer that is being written goes on.
      form.remove();
    }
    if (event.key !== "Enter" || event.shiftKey) return;
    event.preventDefault();
    form.requestSubmit();
  });
  return form;
}
