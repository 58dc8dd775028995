// Returns what those who cannot see or point well would stumble over.
() => {
  const found = [];
  const shown = (node) => node.checkVisibility({ visibilityProperty: true, opacityProperty: false });
  const all = (selector) => [...document.querySelectorAll(selector)].filter(shown);
  const name = (node) => `${node.localName}.${node.className} ${node.textContent.trim().slice(0, 30)}`;

  let level = 0;
  for (const heading of all("main :is(h1, h2, h3, h4, h5)")) {
    const next = Number(heading.localName[1]);
    if (level && next > level + 1) found.push(`heading skips a level: ${name(heading)}`);
    level = next;
  }
  const ids = [...document.querySelectorAll("[id]")].map(({ id }) => id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.push(`id twice: ${id}`);
  for (const image of document.images) if (!image.hasAttribute("alt")) found.push(`no alt: ${image.src}`);
  for (const field of all("input, textarea")) {
    if (!field.labels?.length && !field.ariaLabel) found.push(`no label: ${name(field)}`);
  }
  for (const control of all("button, a, summary, input")) {
    const { width, height } = control.getBoundingClientRect();
    const inText = control.matches(".prose *, .way *, .why a, .card a, .skip, input[type=checkbox]");
    if (!inText && Math.min(width, height) < 24) found.push(`small: ${width} x ${height} ${name(control)}`);
    if (control.closest("[aria-hidden=true]")) found.push(`hidden control: ${name(control)}`);
  }
  const { scrollWidth, clientWidth } = document.documentElement;
  const inner = document.getElementById("scroll");
  if (scrollWidth > clientWidth) found.push(`page is ${scrollWidth} wide in ${clientWidth}`);
  if (inner.scrollWidth > inner.clientWidth) found.push("conversation scrolls sideways");
  return found;
}
