// Lets a test read Markdown with the page's own module: whole, or as it grows.
async () => {
  const { MarkdownView } = await import(document.querySelector("script[type=module]").src.replace("main.js", "markdown/view.js"));
  const chip = (number) => Object.assign(document.createElement("b"), { textContent: number });
  const read = (root) => root.innerHTML.replaceAll(/<button.*?<\/button>/g, "");
  window.MarkdownView = MarkdownView;
  window.whole = (text) => {
    const view = new MarkdownView({ chip });
    view.show(text);
    return read(view.root);
  };
  window.grown = (text, steps) => {
    const view = new MarkdownView({ chip });
    const seen = [];
    for (const step of steps) {
      view.show(text.slice(0, step), { open: true });
      seen.push(view.root.textContent);
    }
    view.show(text);
    return { html: read(view.root), seen };
  };
}
