// The images that go with the next question: chosen, pasted or dropped.

import { element } from "../controls/dom.js";
import { icon } from "../controls/icons.js";
import { readImageLimits } from "../service/api.js";
import { pictureRow } from "../turn/pictures.js";
import { label, say, words } from "../words/language.js";

const LARGEST_SIDE = 2048;

/** Images, as data URLs. What cannot go with a question is told at once. */
export class Attachments {
  #limits = { accepted: false, most: 0, bytes: 0, kinds: [] };
  #images = [];
  #reading = Promise.resolve();

  constructor() {
    this.input = element("input", { type: "file", multiple: true, hidden: true, tabindex: "-1" });
    this.input.addEventListener("change", async () => {
      await this.add([...this.input.files]);
      this.input.value = "";
    });
    this.button = element("button", { class: "quiet attach", type: "button", hidden: true }, icon("picture"));
    label(this.button, "attach");
    this.button.addEventListener("click", () => this.input.click());
    this.told = element("p", { class: "refused", role: "alert" });
    this.root = element("div", { class: "attachments" });
    this.#draw();
  }

  /** Learn what a question may have; what is added meanwhile waits for it. */
  load() {
    this.#reading = this.#learn();
  }

  /** Return the images, also those that are still being read, and begin anew without any. */
  async take() {
    await this.#reading;
    const images = this.#images;
    this.#images = [];
    this.#draw();
    return images;
  }

  /** Add files, as far as they can be read as images and there is room. */
  add(files) {
    this.#reading = this.#reading.then(() => this.#add(files));
    return this.#reading;
  }

  /** Take the files that are pasted into a field, or dropped anywhere on the page. */
  listen(field, target) {
    field.addEventListener("paste", (event) => {
      const { files, types } = event.clipboardData;
      if (!files.length || types.includes("text/plain")) return;
      event.preventDefault();
      this.add([...files]);
    });
    const withFiles = (event) => event.dataTransfer?.types.includes("Files");
    document.addEventListener("dragover", (event) => {
      if (!withFiles(event)) return;
      event.preventDefault();
      target.dataset.drop = say("dropImages");
    });
    document.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) delete target.dataset.drop;
    });
    document.addEventListener("drop", (event) => {
      delete target.dataset.drop;
      if (!withFiles(event)) return;
      event.preventDefault();
      this.add([...event.dataTransfer.files]);
    });
  }

  async #learn() {
    this.#limits = await readImageLimits().catch(() => this.#limits);
    this.input.accept = this.#limits.kinds.join(",");
    this.button.hidden = !this.#limits.accepted;
  }

  async #add(files) {
    const { accepted, most } = this.#limits;
    let refusal = null;
    for (const file of files) {
      if (!accepted) refusal = words("imagesUnread");
      else if (this.#images.length >= most) refusal = words("imagesTooMany", { most });
      else {
        const url = await this.#read(file);
        if (url) this.#images.push(url);
        else refusal = words("imageUnusable", { name: file.name, megabytes: this.#megabytes });
      }
    }
    this.#draw(refusal);
  }

  get #megabytes() {
    return Math.round((this.#limits.bytes / 1024 / 1024) * 10) / 10;
  }

  /** Return a file as a data URL, drawn smaller where it is too large; null if it is no image. */
  async #read(file) {
    const { kinds, bytes } = this.#limits;
    const fits = kinds.includes(file.type) && file.size <= bytes;
    const blob = fits ? file : await smaller(file);
    return blob && blob.size <= bytes ? dataUrl(blob) : null;
  }

  #draw(refusal = null) {
    const remove = (index) => {
      this.#images.splice(index, 1);
      this.#draw();
    };
    const row = this.#images.length ? pictureRow(this.#images, { remove }) : null;
    this.told.replaceChildren(...(refusal ? [refusal] : []));
    this.root.replaceChildren(...[row, this.told, this.input].filter(Boolean));
  }
}

/** Draw an image that is too large, or of a kind that only browsers read, once more. */
async function smaller(file) {
  try {
    const drawn = await createImageBitmap(file);
    const scale = Math.min(1, LARGEST_SIDE / Math.max(drawn.width, drawn.height));
    const canvas = element("canvas", {});
    canvas.width = Math.max(1, Math.round(drawn.width * scale));
    canvas.height = Math.max(1, Math.round(drawn.height * scale));
    const pen = canvas.getContext("2d");
    pen.fillStyle = "white";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.drawImage(drawn, 0, 0, canvas.width, canvas.height);
    return await new Promise((resolve) => canvas.toBlob(resolve, "image/jpeg", 0.85));
  } catch {
    return null;
  }
}

function dataUrl(blob) {
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result));
    reader.addEventListener("error", () => resolve(null));
    reader.readAsDataURL(blob);
  });
}
