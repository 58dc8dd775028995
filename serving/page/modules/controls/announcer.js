// Tells screen readers what sighted people see happen.

let pending = 0;

/** Say something when the reader has finished; of several in a row the last is said. */
export function announce(text) {
  clearTimeout(pending);
  pending = setTimeout(() => {
    document.getElementById("announcer").textContent = text;
  }, 150);
}
