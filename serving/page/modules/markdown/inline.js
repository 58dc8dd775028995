// Reads Markdown inside a line into a tree of spans.

import { isKept } from "../turn/pictures.js";

const ESCAPED = /^\\([!-/:-@[-`{-~])/;
const CODE = /^(`+)([^]*?[^`])\1(?!`)/;
const ADDRESS = /^https?:\/\/[^\s<>"'`，。；：！？、（）《》“”]+/;
const BRACKETED = /^<((?:https?:\/\/|mailto:)[^\s<>]+)>/;
const CITATION = /^\[(\d{1,3})\]/;
const LINK = /^!?\[((?:[^[\]\\]|\\.|\[[^[\]]*\])*)\]\(\s*(<[^<>\n]*>|(?:[^\s()\\]|\\.|\([^\s()]*\))*)(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/;
const OPEN_LINK = /^!?\[((?:[^[\]\\]|\\.)*)(?:\]\([^)\n]*)?$/;
const FORMULA = /^(?:\\\(([^]+?)\\\)|\$\$([^$]+)\$\$|\$(?=\S)([^$\n]*?[^\s\\$])\$(?!\d))/;
const MARKS = [
  { mark: "***", type: "strongest" },
  { mark: "___", type: "strongest" },
  { mark: "**", type: "strong" },
  { mark: "__", type: "strong" },
  { mark: "~~", type: "gone" },
  { mark: "*", type: "stress" },
  { mark: "_", type: "stress" },
];
const PLAIN = /^[^\\`*_~[\]!<>$h\n]+/;
const DEEPEST = 12;

/**
 * Return spans: `{type, text}` or `{type, spans}`. While `open`, the text goes on: a mark that
 * is not closed yet counts as closed at the end, and a mark alone at the end is not shown.
 */
export function readInline(text, { open = false, depth = 0 } = {}) {
  const spans = [];
  let rest = text;
  let before = "";
  // A mark that is not closed behind one place is not closed behind a later one either.
  const unclosed = new Set();
  while (rest) {
    const state = { open, depth, unclosed };
    const taken = depth < DEEPEST ? next(rest, before, state) : { length: rest.length };
    const used = rest.slice(0, taken.length);
    if (taken.span) spans.push(taken.span);
    else addText(spans, taken.text ?? used);
    before = used.at(-1);
    rest = rest.slice(taken.length);
  }
  return spans;
}

function next(rest, before, state) {
  let found = PLAIN.exec(rest);
  if (found) return { length: found[0].length };
  if (rest[0] === "\n") return { length: 1, span: { type: "break" } };
  if ((found = FORMULA.exec(rest))) {
    return { length: found[0].length, span: { type: "formula", text: found.slice(1).find(Boolean) } };
  }
  if ((found = ESCAPED.exec(rest))) return { length: 2, text: found[1] };
  if (rest[0] === "`") return code(rest, state);
  if (rest[0] === "[" || rest.startsWith("![")) return link(rest, state);
  if ((found = BRACKETED.exec(rest))) {
    return { length: found[0].length, span: linked(found[1], [textSpan(found[1])]) };
  }
  if (!/\w/.test(before) && (found = ADDRESS.exec(rest))) {
    const address = found[0].replace(/[.,;:!?)\]}*_~]+$/, "");
    return { length: address.length, span: linked(address, [textSpan(address)]) };
  }
  return marked(rest, before, state) ?? { length: 1 };
}

function code(rest, { open, unclosed }) {
  const ticks = /^`+/.exec(rest)[0];
  const found = unclosed.has(ticks) ? null : CODE.exec(rest);
  if (found) {
    const text = found[2].replace(/^ (.*[^ ].*) $/s, "$1");
    return { length: found[0].length, span: { type: "code", text } };
  }
  unclosed.add(ticks);
  if (!open) return { length: ticks.length };
  const text = rest.slice(ticks.length);
  return { length: rest.length, span: text ? { type: "code", text } : { type: "nothing" } };
}

function link(rest, { open, depth }) {
  let found = LINK.exec(rest);
  if (found) {
    const target = found[2].replace(/^<|>$/g, "").replace(/\\(.)/g, "$1");
    if (rest[0] === "!" && isKept(target)) return { length: found[0].length, span: { type: "picture", address: target } };
    const spans = readInline(found[1] || target, { depth: depth + 1 });
    return { length: found[0].length, span: linked(target, spans) };
  }
  if ((found = CITATION.exec(rest))) {
    return { length: found[0].length, span: { type: "citation", number: Number(found[1]) } };
  }
  if (open && (found = OPEN_LINK.exec(rest))) {
    const started = found[0].includes("](") || found[1].length > 60;
    if (started) return { length: rest.length, span: textSpan(found[1]) };
    return { length: rest.length, span: { type: "nothing" } };
  }
  return { length: 1 };
}

function marked(rest, before, { open, depth, unclosed }) {
  for (const { mark, type } of MARKS) {
    if (!rest.startsWith(mark)) continue;
    const inner = rest.slice(mark.length);
    if (!inner) return open ? { length: rest.length, span: { type: "nothing" } } : null;
    if (/^\s/.test(inner) || inner[0] === mark[0]) continue;
    if (mark[0] === "_" && /[\p{L}\p{N}]/u.test(before)) return null;
    const end = unclosed.has(mark) ? -1 : closing(inner, mark);
    if (end > 0) {
      const spans = readInline(inner.slice(0, end), { depth: depth + 1 });
      return { length: mark.length * 2 + end, span: { type, spans } };
    }
    unclosed.add(mark);
    if (open && (mark.length > 1 || !/[\p{L}\p{N}]/u.test(before))) {
      const text = trimmedMark(inner, mark);
      const spans = readInline(text, { open, depth: depth + 1 });
      return { length: rest.length, span: { type, spans } };
    }
  }
  return null;
}

/** Return where the mark is closed, behind something that is not a blank; -1 if nowhere. */
function closing(inner, mark) {
  let at = 0;
  while ((at = inner.indexOf(mark, at)) > 0) {
    const run = /^[*_~]+/.exec(inner.slice(at, at + 4))[0].length;
    if (mark.length === 1 && run === 2) {
      at += 2;
      continue;
    }
    if (mark.length === 2 && run === 3) at += 1;
    const after = inner[at + mark.length];
    const insideWord = mark[0] === "_" && after && /[\p{L}\p{N}]/u.test(after);
    if (!/\s/.test(inner[at - 1]) && inner[at - 1] !== "\\" && !insideWord) return at;
    at += mark.length;
  }
  return -1;
}

const trimmedMark = (text, mark) => (text.endsWith(mark[0]) ? text.slice(0, -1) : text);
const textSpan = (text) => ({ type: "text", text });

function linked(target, spans) {
  const address = target.trim();
  const safe = /^(?:https?:\/\/|mailto:)/i.test(address);
  return safe ? { type: "link", address, spans } : { type: "spans", spans };
}

function addText(spans, text) {
  const last = spans.at(-1);
  if (last?.type === "text") last.text += text;
  else spans.push(textSpan(text));
}
