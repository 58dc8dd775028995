"""Reads the chunks of a retrieval or a reference, in all their shapes."""

from urllib.parse import urlsplit
from zlib import crc32

from chatbot.domain import Passage
from chatbot.knowledge.ragflow.fields import Row, first, number_of, row_of, rows_of, text

BOX = 5  # page or number, then left, right, top, bottom


def read_passages(data: object, assistant: str) -> list[Passage]:
    """Return the passages of a retrieval in their order; a chunk without text is none."""
    return [passage for passage in read_references(data, assistant) if passage.text]


def read_references(data: object, assistant: str) -> list[Passage]:
    """Return what an answer refers to, by the numbers of its markers.

    So a chunk without text counts too, as RAGFlow has them behind answers from tables.
    """
    return [_passage(row, assistant) for row in rows_of(row_of(data).get("chunks"))]


def _passage(row: Row, assistant: str) -> Passage:
    content = text(first(row, "content", "content_with_weight"))
    document_id = text(first(row, "document_id", "doc_id"))
    name = text(first(row, "document_name", "document_keyword", "docnm_kwd"))
    score = number_of(row.get("similarity"))
    return Passage(
        id=text(first(row, "id", "chunk_id"))
        or f"{document_id}:{crc32(content.encode(errors='replace')):x}",
        text=content,
        document=name or document_id or assistant,
        document_id=document_id,
        assistant=assistant,
        score=0.0 if score is None else min(max(score, 0.0), 1.0),
        location=_location(row.get("positions")),
        url=_address(row),
    )


def _location(positions: object) -> str:
    """Return the pages, or the number of the part where the document has no pages.

    A text without pages carries one number five times instead of a page with its box.
    """
    boxes = [
        box
        for box in (positions if isinstance(positions, list) else [])
        if isinstance(box, list) and len(box) == BOX and number_of(box[0]) is not None
    ]
    if not boxes:
        return ""
    if all(len(set(box)) == 1 for box in boxes):
        return f"¶ {int(boxes[0][0])}"
    pages = sorted({int(box[0]) for box in boxes})
    return f"p. {pages[0]}" if len(pages) == 1 else f"p. {pages[0]}–{pages[-1]}"


def _address(row: Row) -> str | None:
    metadata = row_of(row.get("document_metadata"))
    for value in (row.get("url"), metadata.get("url"), metadata.get("source_url")):
        address = text(value)
        if address and _is_web_address(address):
            return address
    return None


def _is_web_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.netloc)
