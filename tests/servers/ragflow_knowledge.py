"""What a RAGFlow server knows: assistants, datasets, documents, and a search over them."""

import hashlib
import math
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

EMBEDDING_MODEL = "bge-m3@Ollama"
CREATED = 1_795_995_974_847
_WORD = re.compile(r"[a-z0-9]+|[\u4e00-\u9fff]+")
_EMPTY = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "at",
        "be",
        "by",
        "do",
        "does",
        "for",
        "how",
        "i",
        "in",
        "is",
        "it",
        "of",
        "on",
        "or",
        "the",
        "to",
        "what",
    ]
)
_FUNCTION = frozenset("的了是在有和吗呢么什怎样那它这我你请问个几")


def made_id(name: str) -> str:
    """Return an id of RAGFlow's form that is always the same for a name."""
    digest = hashlib.md5(name.encode(), usedforsecurity=False).digest()
    return uuid.UUID(bytes=digest, version=1).hex


@dataclass(kw_only=True)
class Document:
    name: str
    chunks: Sequence[str] = ()
    pages: bool = False
    blob: bytes = b""
    run: str = "DONE"
    progress: float = 1.0
    message: str = ""
    created: int = 4 * CREATED  # far in the future: no file of a test is newer
    id: str = ""

    def __post_init__(self) -> None:
        self.id = self.id or made_id(self.name)
        self.blob = self.blob or "\n\n".join(self.chunks).encode()


@dataclass(kw_only=True)
class Dataset:
    name: str
    description: str = ""
    embedding_model: str = EMBEDDING_MODEL
    documents: list[Document] = field(default_factory=list)
    id: str = ""

    def __post_init__(self) -> None:
        self.id = self.id or made_id(f"dataset {self.name}")


@dataclass(kw_only=True)
class Chat:
    name: str
    description: str = "A helpful Assistant"
    datasets: Sequence[Dataset] = ()
    dataset_ids: Sequence[str] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    prompt_config: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""

    def __post_init__(self) -> None:
        self.id = self.id or made_id(f"chat {self.name}")
        self.dataset_ids = list(self.dataset_ids) or [each.id for each in self.datasets]


def tokens(text: str) -> list[str]:
    """Return words, and pairs of Chinese characters, without those that carry no meaning."""
    found: list[str] = []
    for run in _WORD.findall(text.lower()):
        if run[0] < "\u4e00":
            found += [] if run in _EMPTY else [run.removesuffix("s")]
        else:
            pairs = [run[at : at + 2] for at in range(max(len(run) - 1, 1))]
            found += [pair for pair in pairs if not _FUNCTION & set(pair)]
    return found


def scored(
    question: str, datasets: Iterable[Dataset]
) -> list[tuple[float, Dataset, Document, int]]:
    """Return every chunk that shares a word with the question, the most alike first."""
    places = [
        (dataset, document, number)
        for dataset in datasets
        for document in dataset.documents
        if document.run == "DONE"
        for number in range(len(document.chunks))
    ]
    bags = [set(tokens(document.chunks[number])) for _, document, number in places]
    wanted = set(tokens(question))
    weights = {
        token: math.log(1 + (1 + len(bags)) / (1 + sum(token in bag for bag in bags)))
        for token in wanted
    }
    whole = sum(weights.values()) or 1.0
    results = [
        (sum(weights[token] for token in wanted & bag) / whole, *place)
        for bag, place in zip(bags, places, strict=True)
        if wanted & bag
    ]
    return sorted(results, key=lambda result: -result[0])


def sample() -> list[Chat]:
    """Return a small bilingual knowledge: a handbook, Walden, and the manual of a pump."""
    handbook = Dataset(
        name="handbook",
        description="Leave, benefits and working hours · 假期、福利与工作时间",
        documents=[
            Document(
                name="员工手册.md",
                chunks=[
                    "年假：满一年的员工每年有 15 天年假，满五年后为 20 天，可结转至次年三月。",
                    "福利：公司每月发放 600 元餐补和 300 元交通补贴，每年提供一次免费体检。",
                    "远程办公：每周最多可远程办公两天，须提前一天告知主管。",
                ],
            ),
            Document(
                name="handbook.pdf",
                pages=True,
                chunks=[
                    "Sick leave: a doctor's note is needed from the third day of sick leave.",
                    "Travel expenses are reimbursed within 30 days when receipts are attached.",
                ],
            ),
        ],
    )
    walden = Dataset(
        name="walden",
        description="梭罗的《瓦尔登湖》 · Thoreau's Walden",
        documents=[
            Document(
                name="瓦尔登湖.txt",
                chunks=[
                    "瓦尔登湖的风景：湖水清澈深邃，四周是松林和橡树林，春天冰面开裂，秋天枫叶映红湖岸。",
                    "《瓦尔登湖》的作者是亨利·戴维·梭罗，他在湖边的木屋里独自生活了两年零两个月。",
                ],
            ),
            Document(
                name="walden.txt",
                chunks=[
                    "Walden was written by Henry David Thoreau, who lived in a cabin there.",
                    "The scenery of Walden pond: clear deep water ringed by pines and oaks.",
                ],
            ),
        ],
    )
    pump = Dataset(
        name="pump-manual",
        documents=[
            Document(
                name="pump.pdf",
                pages=True,
                chunks=[
                    "The warranty of the X200 pump lasts 24 months from the date of purchase.",
                    "Clean the filter of the X200 pump every 500 operating hours.",
                    "X200 水泵的保修期为 24 个月，自购买之日起计算。",
                ],
            )
        ],
    )
    return [
        Chat(
            name="员工手册",
            description="公司制度、假期与福利 · company handbook",
            datasets=[handbook],
        ),
        Chat(
            name="瓦尔登湖", description="《瓦尔登湖》一书 · the book Walden", datasets=[walden]
        ),
        Chat(name="X200 manual", datasets=[pump]),
    ]
