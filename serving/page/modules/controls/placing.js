// Puts what opens beside what opened it, inside the window.

const GAP = 8;

/** Put a fixed element below `anchor`, or above it where there is more room. */
export function place(shown, anchor) {
  const { top, bottom, left } = anchor.getBoundingClientRect();
  const { width, height } = shown.getBoundingClientRect();
  const below = bottom + GAP + height <= innerHeight || innerHeight - bottom > top;
  const y = below ? bottom + GAP : top - GAP - height;
  shown.style.left = `${within(left, innerWidth - width)}px`;
  shown.style.top = `${within(y, innerHeight - height)}px`;
}

const within = (place, most) => Math.max(GAP, Math.min(place, most - GAP));
