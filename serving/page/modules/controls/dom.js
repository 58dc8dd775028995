// Builds elements. Text only ever enters the page as text nodes and attributes.

/**
 * Return an element. `on` maps events to listeners, `data` fills the dataset, `true` and `false`
 * set and leave out an attribute. Children are nodes, strings, or nothing.
 */
export function element(tag, { on = {}, data = {}, ...attributes } = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  for (const [name, value] of Object.entries(data)) {
    if (value != null) made.dataset[name] = value;
  }
  for (const [event, listener] of Object.entries(on)) made.addEventListener(event, listener);
  made.append(...children.flat().filter((child) => child != null));
  return made;
}

/** Make `before` look like `after` and keep every node that can stay. */
export function become(before, after) {
  const wanted = [...after.childNodes];
  for (const [index, child] of wanted.entries()) {
    const present = before.childNodes[index];
    if (!present) before.append(child);
    else if (!resembles(present, child)) present.replaceWith(child);
    else if (present.nodeType === Node.TEXT_NODE) {
      grow(present, child.data);
    } else if (!present.dataset?.fixed) become(present, child);
  }
  while (before.childNodes.length > wanted.length) before.lastChild.remove();
}

/** Append where that is enough: what somebody has marked in the text stays marked. */
function grow(text, data) {
  if (data.startsWith(text.data)) text.appendData(data.slice(text.data.length));
  else text.data = data;
}

function resembles(one, other) {
  if (one.nodeType !== other.nodeType || one.nodeName !== other.nodeName) return false;
  if (one.nodeType !== Node.ELEMENT_NODE) return true;
  if (one.dataset?.fixed || other.dataset?.fixed) return one.dataset?.fixed === other.dataset?.fixed;
  return [...new Set([...one.getAttributeNames(), ...other.getAttributeNames()])].every(
    (name) => one.getAttribute(name) === other.getAttribute(name),
  );
}
