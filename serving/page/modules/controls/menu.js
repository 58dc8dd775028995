// A button with a menu: one is open at a time, Escape and a click elsewhere close it.

import { element } from "./dom.js";
import { place } from "./placing.js";

let open = null;

/** Return the button in a frame; `draw()` returns the menu's content when it opens. */
export function menuButton(button, draw) {
  const frame = element("div", { class: "frame" }, button);
  button.setAttribute("aria-haspopup", "true");
  button.setAttribute("aria-expanded", "false");
  button.addEventListener("click", async () => {
    if (open?.button === button) return closeMenu();
    closeMenu();
    const menu = element("div", { class: "menu", popover: "manual" });
    open = { button, frame, menu };
    button.setAttribute("aria-expanded", "true");
    const content = await draw();
    if (open?.menu !== menu) return;
    menu.append(...content);
    frame.append(menu);
    menu.showPopover();
    place(menu, button);
    menu.querySelector("input, button, a")?.focus({ preventScroll: true });
  });
  return frame;
}

/** Return a line of a menu that does something. */
export function menuItem(icon, words, act) {
  const chosen = () => {
    closeMenu({ refocus: true });
    act();
  };
  return element("button", { class: "item", type: "button", on: { click: chosen } }, icon, words);
}

export function closeMenu({ refocus = false } = {}) {
  if (!open) return;
  open.menu.remove();
  open.button.setAttribute("aria-expanded", "false");
  if (refocus) open.button.focus({ preventScroll: true });
  open = null;
}

document.addEventListener("pointerdown", (event) => {
  if (open && !open.frame.contains(event.target)) closeMenu();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !open) return;
  event.stopImmediatePropagation(); // What is below the menu stays open.
  closeMenu({ refocus: true });
});
document.addEventListener("scroll", (event) => {
  if (open && !open.menu.contains(event.target)) closeMenu();
}, { capture: true, passive: true });
addEventListener("resize", () => closeMenu());
