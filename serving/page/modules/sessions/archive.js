// Brings a conversation back that was exported.

import { element } from "../controls/dom.js";
import { icon } from "../controls/icons.js";
import { importSession } from "../service/api.js";
import { newId } from "../service/ids.js";
import { failureWords, label, words } from "../words/language.js";

/** Return the button; what cannot be read is said in `told`. */
export function importButton({ open, changed }, told) {
  const field = element("input", { type: "file", accept: "application/json,.json", hidden: true, tabindex: "-1" });
  const button = label(element("button", { class: "quiet", type: "button" }, icon("upload")), "import");
  button.addEventListener("click", () => {
    told.replaceChildren();
    field.click();
  });
  field.addEventListener("change", async () => {
    const [file] = field.files;
    field.value = "";
    if (!file) return;
    try {
      const { session_id: id } = await imported(JSON.parse(await file.text()));
      await changed();
      open(id);
    } catch (error) {
      told.replaceChildren(...notImported(file, error));
    }
  });
  return element("span", {}, button, field);
}

function notImported({ name }, error) {
  const told = words("notImported", { name });
  return error instanceof SyntaxError ? [told] : [told, " ", failureWords(error)];
}

/** Import under its own name; where another conversation has that name, under a new one. */
async function imported(data) {
  try {
    return await importSession(data);
  } catch (error) {
    if (error.code !== "invalid_input") throw error;
    return importSession(data, newId());
  }
}
