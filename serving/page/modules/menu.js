// A button with a menu: one is open at a time, Escape and a click elsewhere close it.

import { element } from "./dom.js";

let open = null;

/** Return the button in a frame; `draw()` returns the menu's content when it opens. */
export function menuButton(button, draw) {
  const frame = element("div", { class: "frame" }, button);
  button.setAttribute("aria-haspopup", "true");
  button.setAttribute("aria-expanded", "false");
  button.addEventListener("click", async () => {
    if (open?.button === button) return close();
    close();
    const menu = element("div", { class: "menu" });
    open = { button, frame, menu };
    button.setAttribute("aria-expanded", "true");
    const content = await draw();
    if (open?.menu !== menu) return;
    menu.append(...content);
    frame.append(menu);
    menu.querySelector("input, button, a")?.focus();
  });
  return frame;
}

function close({ refocus = false } = {}) {
  if (!open) return;
  open.menu.remove();
  open.button.setAttribute("aria-expanded", "false");
  if (refocus) open.button.focus();
  open = null;
}

document.addEventListener("pointerdown", (event) => {
  if (open && !open.frame.contains(event.target)) close();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") close({ refocus: true });
});
