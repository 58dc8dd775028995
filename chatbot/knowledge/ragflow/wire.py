"""Reads RAGFlow's replies: all that differs between its versions is told apart here."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from zlib import crc32

from chatbot.domain import Passage

PAGE_SIZE = 100  # the most that every endpoint allows
STOCK_DESCRIPTION = "A helpful Assistant"  # what RAGFlow writes when nobody describes one
TOP_N = 6
TOP_K = 1024
SIMILARITY_THRESHOLD = 0.2
VECTOR_SIMILARITY_WEIGHT = 0.3
BOX = 5  # page or number, then left, right, top, bottom

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Dataset:
    """A dataset as a list shows it."""

    id: str
    name: str = ""
    description: str = ""
    embedding_model: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chat:
    """An assistant with the settings that it retrieves with."""

    id: str
    name: str
    description: str = ""
    dataset_ids: Sequence[str] = ()
    datasets: Sequence[Dataset] = ()
    top_n: int = TOP_N
    top_k: int = TOP_K
    similarity_threshold: float = SIMILARITY_THRESHOLD
    vector_similarity_weight: float = VECTOR_SIMILARITY_WEIGHT
    rerank_id: str | None = None
    keyword: bool = False
    use_kg: bool = False
    toc_enhance: bool = False
    cross_languages: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """One page of a list, and how many rows there are in all, where the server says it."""

    rows: Sequence[Row]
    total: int | None = None


def page(envelope: Row, key: str) -> Page:
    """Return the rows of a reply: a list, or an object that has them under `key`."""
    data = envelope.get("data")
    if isinstance(data, Mapping):
        total = data.get("total")
        rows = data.get(key)
    else:
        total = envelope.get("total_datasets", envelope.get("total"))
        rows = data
    return Page(rows=tuple(rows_of(rows)), total=total if type(total) is int else None)


def chat(row: Row) -> Chat | None:
    """Return the assistant of a row; older servers keep its settings under `prompt`."""
    if not (id_ := text(row.get("id"))):
        return None
    prompt = _row(row.get("prompt_config")) or _row(row.get("prompt"))
    settings = {**prompt, **row}
    nested = [found for each in rows_of(row.get("datasets")) if (found := dataset(each))]
    ids = _texts(row.get("dataset_ids") or row.get("kb_ids")) or [each.id for each in nested]
    weight = _number(settings.get("vector_similarity_weight"))
    by_words = _number(settings.get("keywords_similarity_weight"))
    if weight is None and by_words is not None:
        weight = 1 - by_words
    threshold = _number(settings.get("similarity_threshold"))
    description = text(row.get("description"))
    return Chat(
        id=id_,
        name=text(row.get("name")) or id_,
        description="" if description == STOCK_DESCRIPTION else description,
        dataset_ids=tuple(dict.fromkeys(ids)),
        datasets=tuple(nested),
        top_n=_count(settings.get("top_n"), TOP_N, PAGE_SIZE),
        top_k=_count(settings.get("top_k"), TOP_K),
        similarity_threshold=SIMILARITY_THRESHOLD if threshold is None else threshold,
        vector_similarity_weight=VECTOR_SIMILARITY_WEIGHT if weight is None else weight,
        rerank_id=text(settings.get("rerank_id") or settings.get("rerank_model")) or None,
        keyword=settings.get("keyword") is True,
        use_kg=settings.get("use_kg") is True,
        toc_enhance=settings.get("toc_enhance") is True,
        cross_languages=tuple(_texts(settings.get("cross_languages"))),
    )


def dataset(row: Row) -> Dataset | None:
    """Return the dataset of a row."""
    if not (id_ := text(row.get("id"))):
        return None
    return Dataset(
        id=id_,
        name=text(row.get("name")),
        description=text(row.get("description")),
        embedding_model=text(row.get("embedding_model") or row.get("embd_id")),
    )


def passages(data: object, assistant: str) -> list[Passage]:
    """Return the passages of a retrieval or a reference, in their order."""
    chunks = _row(data).get("chunks")
    return [
        passage
        for each in rows_of(chunks)
        if (passage := _passage(each, assistant)) is not None
    ]


def rows_of(value: object) -> Iterator[Row]:
    """Yield the objects of a list, or of an object that has them by their ids."""
    values: Iterable[object] = ()
    if isinstance(value, Mapping):
        values = value.values()
    elif isinstance(value, list):
        values = value
    return (each for each in values if isinstance(each, Mapping))


def text(value: object) -> str:
    """Return a string of the reply without white space around it, or ""."""
    return value.strip() if isinstance(value, str) else ""


def _passage(row: Row, assistant: str) -> Passage | None:
    content = text(_first(row, "content", "content_with_weight"))
    if not content:
        return None
    document_id = text(_first(row, "document_id", "doc_id"))
    name = text(_first(row, "document_name", "document_keyword", "docnm_kwd"))
    score = _number(row.get("similarity"))
    return Passage(
        id=text(_first(row, "id", "chunk_id"))
        or f"{document_id}:{crc32(content.encode(errors='replace')):x}",
        text=content,
        document=name or document_id,
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
        if isinstance(box, list) and len(box) == BOX and _number(box[0]) is not None
    ]
    if not boxes:
        return ""
    if all(len(set(box)) == 1 for box in boxes):
        return f"¶ {int(boxes[0][0])}"
    pages = sorted({int(box[0]) for box in boxes})
    return f"p. {pages[0]}" if len(pages) == 1 else f"p. {pages[0]}–{pages[-1]}"


def _address(row: Row) -> str | None:
    metadata = _row(row.get("document_metadata"))
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


def _first(row: Row, *names: str) -> object:
    return next((row[name] for name in names if row.get(name)), None)


def _row(value: object) -> Row:
    return value if isinstance(value, Mapping) else {}


def _texts(value: object) -> list[str]:
    return [found for each in value if (found := text(each))] if isinstance(value, list) else []


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _count(value: object, default: int, most: int | None = None) -> int:
    number = _number(value)
    count = default if number is None or number < 1 else int(number)
    return count if most is None else min(count, most)
