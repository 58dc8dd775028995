// Keeps the number of a citation on the line of the word that it belongs to.

const LAST_WORD = /(?:[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[^\s\p{Script=Han}]{1,24})[\s\p{P}]*$/u;
const MARK = /^[.,;:!?)。，；：！？、）]+/;

/** Return the spans, with each row of citations, the word before and the mark behind as one. */
export function keepTogether(spans) {
  const kept = [];
  for (const span of spans) {
    const last = kept.at(-1);
    if (span.type === "together") kept.push(span);
    else if (span.type === "citation") {
      if (last?.type === "together" && !last.marked) last.spans.push(span);
      else kept.push({ type: "together", spans: [...wordBefore(kept), span] });
    } else if (span.type === "text" && last?.type === "together" && !last.marked) {
      // Blanks between two numbers, and the mark that ends the sentence.
      const mark = MARK.exec(span.text)?.[0] ?? "";
      if (mark) last.spans.push({ type: "text", text: mark });
      last.marked = true;
      if (span.text.length > mark.length) kept.push({ type: "text", text: span.text.slice(mark.length) });
    } else kept.push(span);
  }
  return kept;
}

function wordBefore(kept) {
  const last = kept.at(-1);
  const word = last?.type === "text" ? LAST_WORD.exec(last.text)?.[0] : "";
  if (!word) return [];
  last.text = last.text.slice(0, -word.length);
  if (!last.text) kept.pop();
  return [{ type: "text", text: word }];
}
