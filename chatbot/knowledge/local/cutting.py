"""Cuts a document into passages, at its headings and between its sentences."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from chatbot.knowledge.local.pages import mended
from chatbot.text import sentences

LONGEST = 700  # characters of a passage; a single table row may be longer
_LONGEST_HEADING = 60

_HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$")
_UNDERLINE = re.compile(r"^ {0,3}(=+|-+)\s*$")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_ROW = re.compile(r"^\s*\|.*\|\s*$")
_RULE = re.compile(r"^\s*\|?[\s:|-]*-[\s:|-]*\|?\s*$")
_ITEM = re.compile(r"^\s*(?:[-*+•·]|\d{1,3}[.)、])\s*\S")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:\s*[\"']?(.*?)[\"']?\s*$", re.MULTILINE)
_NUMBERED_HEADING = re.compile(
    r"^(?:第[一二三四五六七八九十百零〇\d]+[章节条部分篇]|[一二三四五六七八九十]+、|\d+(?:\.\d+)*[.、\s]"
    r"|chapter\s+\w+|section\s+\w+)",
    re.IGNORECASE,
)
_ENDS_SENTENCE = re.compile(r"[。！？；，、：.!?;,:…|]$")


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage before it has an id: its heading path and its text."""

    location: str
    text: str


@dataclass(slots=True)
class _Block:
    """Lines that belong together: a paragraph, a list item, a table, or code."""

    lines: list[str]
    headings: tuple[str, ...]
    table: bool = False

    @property
    def text(self) -> str:
        return "\n".join(self.lines).strip()


@dataclass(slots=True)
class _Outline:
    """The headings that stand above the current line."""

    path: list[tuple[int, str]] = field(default_factory=list)
    first: str = ""

    def enter(self, level: int, title: str) -> None:
        self.first = self.first or title
        while self.path and self.path[-1][0] >= level:
            self.path.pop()
        self.path.append((level, title))

    def titles(self) -> tuple[str, ...]:
        return tuple(title for _, title in self.path)


def cut(text: str, *, markdown: bool) -> tuple[str, list[Piece]]:
    """Return the document's title, or "", and its passages."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    title = ""
    if markdown and (front := _FRONT_MATTER.match(text)):
        named = _FRONT_TITLE.search(front.group(1))
        title = named.group(1) if named else ""
        text = text[front.end() :]
    outline = _Outline()
    blocks = _markdown_blocks(text, outline) if markdown else _plain_blocks(text, outline)
    pieces = list(_pack(blocks))
    return title or outline.first, pieces


def cut_pages(pages: Sequence[str]) -> tuple[str, list[Piece]]:
    """Return the title, or "", and the passages of a document with pages, each on one page."""
    outline = _Outline()
    blocks = [
        replace(block, headings=(*block.headings, f"p. {number}"))
        for number, page in enumerate(mended(pages), 1)
        for block in _plain_blocks(page, outline)
    ]
    level, title = outline.path[0] if outline.path else (0, "")
    return title if level == 1 else "", list(_pack(blocks))


def _markdown_blocks(text: str, outline: _Outline) -> Iterator[_Block]:
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        if fence:
            lines.append(line)
            fence = "" if line.strip().startswith(fence) else fence
        elif opening := _FENCE.match(line):
            yield from _taken(lines, outline)
            fence = opening.group(1)
            lines.append(line)
        elif heading := _heading(lines, line):
            yield from _taken(lines, outline)
            outline.enter(*heading)
        else:
            if _begins_block(lines, line):
                yield from _taken(lines, outline)
            if line.strip():
                lines.append(line)
    yield from _taken(lines, outline)


def _taken(lines: list[str], outline: _Outline) -> Iterator[_Block]:
    """Give the collected lines as a block, if they say anything, and start anew."""
    said = [line for line in lines if line.strip()]
    if said:
        yield _Block(said, outline.titles(), table=bool(_ROW.match(said[0])))
    lines.clear()


def _heading(lines: list[str], line: str) -> tuple[int, str] | None:
    """Return level and title if the line is a heading, or underlines the one before it."""
    if heading := _HEADING.match(line):
        return len(heading.group(1)), _bare(heading.group(2))
    underlined = _UNDERLINE.match(line)
    if underlined and len(lines) == 1 and lines[0].strip() and not _ROW.match(lines[0]):
        return 1 if underlined.group(1)[0] == "=" else 2, _bare(lines.pop())
    return None


def _begins_block(lines: list[str], line: str) -> bool:
    if not lines or not line.strip():
        return True
    return bool(_ITEM.match(line)) or bool(_ROW.match(line)) != bool(_ROW.match(lines[0]))


def _plain_blocks(text: str, outline: _Outline) -> Iterator[_Block]:
    paragraphs = [part for part in re.split(r"\n\s*\n", text) if part.strip()]
    for at, paragraph in enumerate(paragraphs):
        lines = [line for line in paragraph.split("\n") if line.strip()]
        listed = len(lines) > 1 and all(_ITEM.match(line) for line in lines[:2])
        if _ROW.match(lines[0]):
            yield _Block(lines, outline.titles(), table=True)
            continue
        followed = len(lines) > 1 or at + 1 < len(paragraphs)
        if followed and not listed and _is_heading(lines[0]):
            heading = lines.pop(0).strip()
            title = not outline.path and at == 0 and not _NUMBERED_HEADING.match(heading)
            outline.enter(1 if title else 2, heading)
        if lines:
            yield from _lines_as_blocks(lines, outline.titles())


def _lines_as_blocks(lines: list[str], headings: tuple[str, ...]) -> Iterator[_Block]:
    kept: list[str] = []
    for line in lines:
        if kept and _ITEM.match(line):
            yield _Block(kept, headings)
            kept = []
        kept.append(line)
    yield _Block(kept, headings)


def _is_heading(line: str) -> bool:
    line = line.strip()
    if len(line) > _LONGEST_HEADING or _ENDS_SENTENCE.search(line):
        return False
    return bool(_NUMBERED_HEADING.match(line)) or not _ITEM.match(line)


def _pack(blocks: Iterable[_Block]) -> Iterator[Piece]:
    """Join blocks below the same heading as long as they fit into one passage."""
    kept: list[str] = []
    size = 0
    headings: tuple[str, ...] = ()
    for block in blocks:
        for part in _fitting(block):
            if kept and (block.headings != headings or size + len(part) > LONGEST):
                yield Piece(" › ".join(headings), "\n".join(kept))
                kept, size = [], 0
            headings = block.headings
            kept.append(part)
            size += len(part) + 1
    if kept:
        yield Piece(" › ".join(headings), "\n".join(kept))


def _fitting(block: _Block) -> Iterator[str]:
    """Give the block in parts that fit into a passage, a table's parts with its head."""
    if len(block.text) <= LONGEST:
        yield block.text
    elif block.table:
        yield from _rows(block.lines)
    else:
        yield from _joined(sentences(block.text), "", " ")


def _rows(lines: list[str]) -> Iterator[str]:
    has_head = len(lines) > 1 and _RULE.match(lines[1])
    head = "\n".join(lines[:2]) + "\n" if has_head else ""
    yield from _joined(lines[2:] if has_head else lines, head, "\n")


def _joined(parts: list[str], head: str, separator: str) -> Iterator[str]:
    text = head
    for part in parts:
        for piece in _limited(part, head):
            if len(text) > len(head) and len(text) + len(piece) > LONGEST:
                yield text.strip()
                text = head
            text += piece + separator
    if len(text) > len(head):
        yield text.strip()


def _limited(part: str, head: str) -> Iterator[str]:
    if head:
        yield part
        return
    for start in range(0, len(part), LONGEST):
        yield part[start : start + LONGEST]


def _bare(heading: str) -> str:
    """Return a heading without Markdown's emphasis, code marks and link targets."""
    heading = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[*_`]{1,3}(?=\S)|(?<=\S)[*`]{1,3}", "", heading).strip()
