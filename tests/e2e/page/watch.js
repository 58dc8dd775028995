// Watches an answer grow: what was complete and went, marks that showed, what moved.
() => {
  const watched = { removed: [], marks: [], shifts: 0 };
  window.watched = watched;
  const complete = new Set();
  new MutationObserver((records) => {
    for (const node of records.flatMap(({ removedNodes }) => [...removedNodes])) {
      if (complete.has(node)) watched.removed.push(node.textContent);
    }
    const blocks = [...document.querySelectorAll(".prose > *")];
    for (const block of blocks.slice(0, -1)) complete.add(block);
    const last = blocks.at(-1)?.textContent ?? "";
    if (/[*|`[]/.test(last)) watched.marks.push(last);
  }).observe(document.getElementById("scroll"), { childList: true, subtree: true, characterData: true });
  new PerformanceObserver((list) => {
    for (const { value } of list.getEntries()) watched.shifts += value;
  }).observe({ type: "layout-shift" });

  // The milliseconds that it takes to draw one more piece of a long answer; the median, for
  // some of the times also hold what else the machine did.
  window.timeOfFrame = async () => {
    const main = document.querySelector("script[type=module]").src;
    const { MarkdownView } = await import(main.replace("main.js", "markdown/view.js"));
    const view = new MarkdownView({ chip: () => null });
    document.body.append(view.root);
    const text = "A line with **bold** words, `code` and a citation [1].\n\n".repeat(300);
    const draw = (more) => view.show(text + "a".repeat(more), { open: true });
    draw(0);
    const times = [];
    for (let more = 1; more <= 100; more += 1) {
      const begun = performance.now();
      draw(more);
      times.push(performance.now() - begun);
    }
    view.root.remove();
    return times.sort((one, other) => one - other)[50];
  };
}
