// Asks who somebody is, where the service wants to know. The key becomes a cookie that no script
// can read, and is kept nowhere else.

import { element } from "../controls/dom.js";
import { icon } from "../controls/icons.js";
import { label, say, words } from "../words/language.js";
import { jsonOptions, request, whenSignedOut } from "./http.js";

let asking = null;
let lastUser = null;

/** Ask on the first answer that wants it; whatever waits for it goes on together. */
export function listenForSignIn() {
  whenSignedOut(() => (asking ??= ask().finally(() => (asking = null))));
}

/** Remember who is signed in: somebody else sees nothing of what the page shows. */
export function rememberUser(id) {
  const another = lastUser !== null && lastUser !== id;
  lastUser = id;
  if (another) location.replace("/");
  return !another;
}

function ask() {
  const { promise, resolve } = Promise.withResolvers();
  const field = label(
    element("input", { type: "password", autocomplete: "current-password", required: true, maxlength: "20000", spellcheck: "false" }),
    "accessKey",
  );
  const told = element("p", { class: "refused", role: "alert" });
  const button = element("button", { class: "button strong", type: "submit" }, words("signIn"));
  const form = element(
    "form",
    {},
    element("img", { src: new URL("../../icon.svg", import.meta.url), alt: "" }),
    words("signInTitle", {}, "h2"),
    words("signInText", {}, "p"),
    element("label", {}, words("accessKey"), field),
    told,
    button,
  );
  const dialog = element("dialog", { class: "dialog sign-in", closedby: "none" }, form);
  label(dialog, "signInTitle");
  dialog.addEventListener("cancel", (event) => event.preventDefault());
  dialog.addEventListener("close", () => dialog.isConnected && dialog.showModal());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    told.replaceChildren();
    try {
      const { user_id: user } = await request("/api/sign-in", { ...jsonOptions("POST", { token: field.value }), signingIn: true });
      field.value = "";
      dialog.remove();
      if (!rememberUser(user)) return;
      document.dispatchEvent(new Event("signedin"));
      resolve();
    } catch (error) {
      told.replaceChildren(icon("alert"), error.code === "unauthorized" ? words("keyRefused") : error.message);
      field.select();
    } finally {
      button.disabled = false;
    }
  });
  document.body.append(dialog);
  dialog.showModal();
  return promise;
}
