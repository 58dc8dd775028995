// Dark and light: the system's until somebody chooses.

import { element } from "./controls/dom.js";
import { icon } from "./controls/icons.js";
import { write } from "./controls/storage.js";
import { label } from "./words/language.js";

const system = matchMedia("(prefers-color-scheme: dark)");

const isDark = () => {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : system.matches;
};

/** Return the button that changes the theme. */
export function themeButton() {
  const button = element("button", { class: "quiet", type: "button", on: { click: change } });
  const show = () => {
    button.replaceChildren(icon(isDark() ? "sun" : "moon"));
    label(button, isDark() ? "toLight" : "toDark");
  };
  function change() {
    const chosen = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = chosen;
    write("theme", chosen);
    show();
  }
  system.addEventListener("change", show);
  show();
  return button;
}
