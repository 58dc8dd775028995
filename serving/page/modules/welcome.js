// The empty page: a greeting, and questions that can be asked with one click.

import { element } from "./controls/dom.js";
import { listSuggestions } from "./service/api.js";
import { language, words } from "./words/language.js";

/** Return the greeting; `ask(question)` is called with the suggestion that was chosen. */
export function welcome(ask) {
  const list = element("ul", { class: "suggestions" });
  const load = async () => {
    const found = await listSuggestions(language()).catch(() => []);
    list.replaceChildren(...found.map((each) => suggestion(each, ask)));
  };
  load();
  return element("div", { class: "welcome" }, words("welcome", {}, "h2"), words("welcomeText", {}, "p"), list);
}

function suggestion({ question, assistant }, ask) {
  const button = element(
    "button",
    { class: "suggestion", type: "button", on: { click: () => ask(question) } },
    element("span", {}, question),
    element("small", {}, assistant),
  );
  return element("li", {}, button);
}
