// Reads Markdown into blocks, each with the lines it came from.

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?(?:\s+#+)?\s*$/;
const RULE = /^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/;
const ITEM = /^( {0,3})([-*+•]|\d{1,9}[.)]|\d{1,2}、)(\s+|$|(?<=、))(.*)$/;
const QUOTE = /^ {0,3}> ?/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
const FORMULA = /^ {0,3}(\$\$|\\\[)/;
const FENCE_BEGUN = /^ {0,3}(?:`{1,2}|~{1,2})$/;
const UNFINISHED = /^\s*(?:[-*+•]|#{1,6}|\d{1,9}[.)]?|`{1,2}|~{1,2}|>|\||[-*_]{2,}|\|[\s:|-]*)\s*$/;
const DEEPEST = 8;

/**
 * Return the blocks of a text. While `open`, the text goes on: a last line of marks alone, which
 * may become anything, is left out.
 */
export function readBlocks(text, { open = false, depth = 0 } = {}) {
  const lines = text.replace(/\r\n?/g, "\n").split("\n");
  if (open && (insideFence(lines) ? FENCE_BEGUN : UNFINISHED).test(lines.at(-1))) lines.pop();
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const { block, end } = readBlock(lines, at, { open, depth });
    block.source = lines.slice(at, end).join("\n");
    blocks.push(block);
    at = end;
  }
  return blocks;
}

function readBlock(lines, at, { open, depth }) {
  const line = lines[at];
  let found;
  if ((found = FENCE.exec(line))) return fenced(lines, at, found);
  const end = formulaEnd(lines, at, open);
  if (end) return formula(lines, at, end);
  if ((found = HEADING.exec(line))) {
    return { block: { type: "heading", level: found[1].length, text: found[2] ?? "" }, end: at + 1 };
  }
  if (RULE.test(line)) return { block: { type: "rule" }, end: at + 1 };
  if (depth < DEEPEST && QUOTE.test(line)) return quote(lines, at, { open, depth });
  if (depth < DEEPEST && ITEM.test(line)) return list(lines, at, { open, depth });
  if (isTable(lines, at, open)) return table(lines, at);
  return paragraph(lines, at, open);
}

function fenced(lines, at, [, fence, kind]) {
  const closing = new RegExp(`^ {0,3}${fence[0]}{${fence.length},}\\s*$`);
  let end = at + 1;
  while (end < lines.length && !closing.test(lines[end])) end += 1;
  const text = lines.slice(at + 1, end).join("\n");
  return { block: { type: "code", kind: kind.trim(), text }, end: Math.min(end + 1, lines.length) };
}

function insideFence(lines) {
  let fence = null;
  for (const line of lines) {
    const found = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (!found) continue;
    if (!fence) fence = found;
    else if (found[0] === fence[0] && found.length >= fence.length) fence = null;
  }
  return fence !== null;
}

/** Return the line behind a formula that begins here and has its lines for itself, or 0. */
function formulaEnd(lines, at, open) {
  const opening = FORMULA.exec(lines[at])?.[1];
  if (!opening) return 0;
  const closing = opening === "$$" ? "$$" : "\\]";
  for (let end = at; end < lines.length; end += 1) {
    const from = end === at ? lines[end].indexOf(opening) + 2 : 0;
    const place = lines[end].indexOf(closing, from);
    if (place >= 0) return lines[end].slice(place + 2).trim() ? 0 : end + 1;
  }
  return open ? lines.length : 0;
}

function formula(lines, at, end) {
  const text = lines.slice(at, end).join("\n").trim().slice(2).replace(/(?:\$\$|\\\])$/, "");
  return { block: { type: "formula", text: text.trim() }, end };
}

function quote(lines, at, { open, depth }) {
  let end = at;
  const inner = [];
  while (end < lines.length && lines[end].trim() && (QUOTE.test(lines[end]) || goesOn(lines, end, inner))) {
    inner.push(lines[end].replace(QUOTE, ""));
    end += 1;
  }
  const options = { open: open && end === lines.length, depth: depth + 1 };
  return { block: { type: "quote", blocks: readBlocks(inner.join("\n"), options) }, end };
}

/** A line without the mark goes on with a paragraph of the quote, not with fenced code. */
const goesOn = (lines, at, inner) => !startsBlock(lines, at) && !insideFence(inner);

function list(lines, at, { open, depth }) {
  const ordered = /\d/.test(ITEM.exec(lines[at])[2]);
  const start = ordered ? Number.parseInt(ITEM.exec(lines[at])[2], 10) : 1;
  const items = [];
  let end = at;
  let indent = 0;
  while (end < lines.length) {
    const line = lines[end];
    const found = ITEM.exec(line);
    const depthOfLine = /^ */.exec(line)[0].length;
    if (!line.trim()) {
      const after = lines.slice(end).find((each) => each.trim());
      if (!after || !(startsItem(after, ordered) || /^ */.exec(after)[0].length >= indent)) break;
      items.at(-1)?.push("");
    } else if (items.length && depthOfLine >= indent) {
      items.at(-1).push(line.slice(indent));
    } else if (found && !RULE.test(line) && /\d/.test(found[2]) === ordered) {
      indent = found[1].length + Math.min(found[2].length + 1, 4);
      items.push([found[4]]);
    } else if (items.length && !startsBlock(lines, end) && lines[end - 1].trim()) {
      items.at(-1).push(line.trim());
    } else break;
    end += 1;
  }
  const last = open && end === lines.length;
  const read = items.map((item, index) => {
    const options = { open: last && index === items.length - 1, depth: depth + 1 };
    return readBlocks(item.join("\n"), options);
  });
  return { block: { type: "list", ordered, start, items: read }, end };
}

function startsItem(line, ordered) {
  const found = ITEM.exec(line);
  return found !== null && /\d/.test(found[2]) === ordered;
}

/** A table is a line with bars and a divider below; while the text goes on, bars are enough. */
function isTable(lines, at, open) {
  const line = lines[at];
  if (!line.includes("|")) return false;
  const below = lines[at + 1] ?? "";
  if (below.includes("-") && DIVIDER.test(below)) return cells(line).length === cells(below).length;
  return open && /^\s*\|/.test(line) && lines.slice(at + 1).every((each) => !each.trim());
}

function table(lines, at) {
  const head = cells(lines[at]);
  const align = cells(lines[at + 1] ?? "").map((cell) => {
    if (/^:-+:$/.test(cell)) return "center";
    return /-:$/.test(cell) ? "right" : null;
  });
  let end = Math.min(at + 2, lines.length);
  const rows = [];
  while (end < lines.length && lines[end].includes("|")) {
    const row = cells(lines[end]);
    rows.push(head.map((_, index) => row[index] ?? ""));
    end += 1;
  }
  return { block: { type: "table", head, align, rows }, end };
}

function cells(line) {
  const inner = line.trim().replace(/^\|/, "").replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"));
}

function paragraph(lines, at, open) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() && !startsBlock(lines, end, open)) end += 1;
  const text = lines.slice(at, end).map((line) => line.trim()).join("\n");
  return { block: { type: "paragraph", text }, end };
}

function startsBlock(lines, at, open = false) {
  const line = lines[at];
  return (
    FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) ||
    formulaEnd(lines, at, open) > 0 || ITEM.test(line) || isTable(lines, at, open)
  );
}
