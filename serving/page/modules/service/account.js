// Who is signed in, and the way out.

import { element } from "../controls/dom.js";
import { icon } from "../controls/icons.js";
import { label } from "../words/language.js";
import { readUser, signOut } from "./api.js";
import { rememberUser } from "./sign-in.js";

/** Return the row with the name and a button to sign out; it is hidden where nobody signs in. */
export function accountRow() {
  const name = element("span", { dir: "auto" });
  const button = label(element("button", { class: "quiet", type: "button" }, icon("leave")), "signOut");
  const row = element("div", { class: "account", hidden: true }, icon("person"), name, button);
  const load = async () => {
    try {
      const { user_id: id, signed_in: signedIn } = await readUser();
      if (!rememberUser(id)) return;
      row.hidden = !signedIn;
      name.textContent = id;
      name.title = id;
    } catch {
      // The badge tells that the service is not there.
    }
  };
  button.addEventListener("click", async () => {
    await signOut().catch(() => {});
    location.replace("/");
  });
  document.addEventListener("signedin", load);
  // A page that the browser kept while somebody else signed in is not theirs to see.
  addEventListener("pageshow", (event) => event.persisted && load());
  load();
  return row;
}
