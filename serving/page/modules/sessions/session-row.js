// A conversation in the list, and what can be done with it.

import { askedFor, confirmed } from "../controls/dialog.js";
import { element } from "../controls/dom.js";
import { icon } from "../controls/icons.js";
import { closeMenu, menuButton, menuItem } from "../controls/menu.js";
import { deleteSession, exportAddress, renameSession } from "../service/api.js";
import { label, say, words } from "../words/language.js";

/** Return the row; it stays the same element as long as all that it shows stays the same. */
export function sessionRow(session, { current, running, act }) {
  const { session_id: id, title } = session;
  const link = sessionLink(id, { title, "aria-current": current ? "page" : null }, () => act.open(id), title);
  const more = label(element("button", { class: "quiet more", type: "button" }, icon("more")), "moreOf", { title });
  const menu = menuButton(more, () => items(session, act));
  const fixed = JSON.stringify([id, title, current, running]);
  const data = { current: current ? "" : null, running: running ? "" : null, id, fixed };
  return element("li", { class: "session", data }, link, menu);
}

/** Return a link to a conversation, which opens it in this page. */
export function sessionLink(id, attributes, open, ...children) {
  const link = element("a", { href: `/?session=${encodeURIComponent(id)}`, dir: "auto", ...attributes }, ...children);
  link.addEventListener("click", (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  return link;
}

function items(session, act) {
  const { session_id: id } = session;
  const file = element("a", { class: "item", href: exportAddress(id), download: "" }, icon("download"), words("export"));
  file.addEventListener("click", () => closeMenu({ refocus: true }));
  return [
    menuItem(icon("pencil"), words("rename"), () => rename(session, act)),
    file,
    menuItem(icon("bin"), words("delete"), () => remove(session, act)),
  ];
}

async function rename({ session_id: id, title }, act) {
  const wanted = await askedFor({ title: "renameTitle", value: title, choice: "save" });
  if (wanted === null || wanted === title) return;
  await renameSession(id, wanted).catch(() => {}); // The list shows whether it has the title.
  await act.changed();
}

async function remove({ session_id: id, title }, act) {
  const text = say("deleteText", { title });
  if (!(await confirmed({ title: say("deleteTitle"), text, choice: "delete" }))) return;
  await act.removed(id);
  await deleteSession(id).catch(() => {}); // The list shows whether it is gone.
  await act.changed();
}
