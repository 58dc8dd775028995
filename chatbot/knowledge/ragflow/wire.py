"""Reads RAGFlow's replies: all that differs between its versions is told apart here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from chatbot.knowledge.ragflow.fields import (
    Row,
    count_of,
    number_of,
    row_of,
    rows_of,
    text,
    texts,
)

PAGE_SIZE = 100  # the most that every endpoint allows
STOCK_DESCRIPTION = "A helpful Assistant"  # what RAGFlow writes when nobody describes one
TOP_N = 6
TOP_K = 1024
SIMILARITY_THRESHOLD = 0.2
VECTOR_SIMILARITY_WEIGHT = 0.3

Run = Literal["UNSTART", "RUNNING", "CANCEL", "DONE", "FAIL"]
RUNS: Sequence[Run] = get_args(Run)  # older servers send the index


@dataclass(frozen=True, kw_only=True, slots=True)
class Dataset:
    """A dataset as a list shows it."""

    id: str
    name: str = ""
    description: str = ""
    embedding_model: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chat:
    """An assistant with the settings that it retrieves with.

    `empty_response` is what it says when it found nothing; without it its model answers then.
    """

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
    metadata_condition: Row | None = None
    empty_response: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A document of a dataset and how far its parsing is, from 0 to 1."""

    id: str
    name: str
    size: int = -1
    run: Run = "UNSTART"
    progress: float = 0.0
    message: str = ""
    created: float = 0.0


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
    prompt = row_of(row.get("prompt_config")) or row_of(row.get("prompt"))
    settings = {**prompt, **row}
    nested = [found for each in rows_of(row.get("datasets")) if (found := dataset(each))]
    ids = texts(row.get("dataset_ids") or row.get("kb_ids")) or [each.id for each in nested]
    weight = number_of(settings.get("vector_similarity_weight"))
    by_words = number_of(settings.get("keywords_similarity_weight"))
    if weight is None and by_words is not None:
        weight = 1 - by_words
    threshold = number_of(settings.get("similarity_threshold"))
    description = text(row.get("description"))
    return Chat(
        id=id_,
        name=text(row.get("name")) or id_,
        description="" if description == STOCK_DESCRIPTION else description,
        dataset_ids=tuple(dict.fromkeys(ids)),
        datasets=tuple(nested),
        top_n=count_of(settings.get("top_n"), TOP_N, PAGE_SIZE),
        top_k=count_of(settings.get("top_k"), TOP_K),
        similarity_threshold=SIMILARITY_THRESHOLD if threshold is None else threshold,
        vector_similarity_weight=VECTOR_SIMILARITY_WEIGHT if weight is None else weight,
        rerank_id=text(settings.get("rerank_id") or settings.get("rerank_model")) or None,
        keyword=settings.get("keyword") is True,
        use_kg=settings.get("use_kg") is True,
        toc_enhance=settings.get("toc_enhance") is True,
        cross_languages=tuple(texts(settings.get("cross_languages"))),
        metadata_condition=_metadata_condition(row_of(settings.get("meta_data_filter"))),
        empty_response=text(settings.get("empty_response")),
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


def document(row: Row) -> Document | None:
    """Return the document of a row; its message is the last line of the parser's protocol."""
    if not (id_ := text(row.get("id"))):
        return None
    progress = number_of(row.get("progress")) or 0.0
    size, created = number_of(row.get("size")), number_of(row.get("create_time"))
    lines = text(row.get("progress_msg")).splitlines()
    return Document(
        id=id_,
        name=text(row.get("name")),
        size=-1 if size is None else int(size),
        run=_run(row.get("run"), progress),
        progress=min(max(progress, 0.0), 1.0),
        message=next((line.strip() for line in reversed(lines) if line.strip()), ""),
        created=(created or 0.0) / 1000,
    )


def _metadata_condition(chosen: Row) -> Row | None:
    """Return the filter that was set by hand; the others are chosen by RAGFlow's model."""
    conditions = [
        {
            "name": text(each.get("key")),
            "comparison_operator": text(each.get("op")),
            "value": each.get("value", ""),
        }
        for each in rows_of(chosen.get("manual"))
        if text(each.get("key")) and text(each.get("op"))
    ]
    if chosen.get("method") != "manual" or not conditions:
        return None
    return {"logic": "or" if chosen.get("logic") == "or" else "and", "conditions": conditions}


def _run(value: object, progress: float) -> Run:
    said = str(value).upper()
    if said in RUNS:
        run = next(each for each in RUNS if each == said)
    else:
        run = RUNS[int(said)] if said in {"0", "1", "2", "3", "4"} else "UNSTART"
    if run in {"UNSTART", "RUNNING"} and (progress >= 1 or progress < 0):
        return "DONE" if progress >= 1 else "FAIL"
    return run
