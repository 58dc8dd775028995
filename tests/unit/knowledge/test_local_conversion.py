"""PDF, Word, Excel and web pages: what is read of them, and what hostile ones can do."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from chatbot.knowledge.local.conversion import Converter
from chatbot.knowledge.local.folder import CONVERTED
from chatbot.knowledge.local.knowledge_base import LocalKnowledgeBase
from chatbot.knowledge.local.reading import UnreadableError
from tests.unit.knowledge.documents import excel, packed, pdf, word

PROJECT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def converter() -> Iterator[Converter]:
    with Converter() as opened:
        yield opened


def test_pages_of_a_pdf_are_told_apart(converter: Converter) -> None:
    first, second = converter.convert(".pdf", pdf("年假规定\n员工享有十天年假。", "Page two."))

    assert first.split() == ["年假规定", "员工享有十天年假。"]
    assert second.strip() == "Page two."


TRAVEL: list[list[object]] = [
    ["城市", "上限", None],
    ["北京", 650, None],
    ["上海", None, "旺季"],
]
TRAVEL_TABLE = """## 差旅
| 城市 | 上限 |  |
| --- | --- | --- |
| 北京 | 650 |  |
| 上海 |  | 旺季 |"""
PAGE = b"""<html><head><title>A title</title><style>p {}</style></head>
<body><h2>Part</h2><p>Text <img src='data:image/png;base64,AAAA' alt='a picture'></p>
<script>alert(1)</script></body></html>"""


@pytest.mark.parametrize(
    ("suffix", "content", "expected"),
    [
        pytest.param(
            ".docx",
            word("# Travel", "Hotels cost <650>."),
            "# Travel\n\nHotels cost <650>.",
            id="Word",
        ),
        pytest.param(
            ".xlsx", excel({"差旅": TRAVEL}), TRAVEL_TABLE, id="empty cells, whole numbers"
        ),
        pytest.param(
            ".xlsx",
            excel({"a": [["note"], ["x" * 200]]}),
            f"## a\n| note |\n| --- |\n| {'x' * 200} |",
            id="Excel, with a long cell",
        ),
        pytest.param(".html", PAGE, "# A title\n\n## Part\n\nText a picture", id="web page"),
        pytest.param(
            ".htm", "<p>水泵每年检修</p>".encode("gb18030"), "水泵每年检修", id="GB18030"
        ),
    ],
)
def test_what_is_read(converter: Converter, suffix: str, content: bytes, expected: str) -> None:
    assert [page.strip() for page in converter.convert(suffix, content)] == [expected]


@pytest.mark.parametrize(
    ("suffix", "content", "reason"),
    [
        pytest.param(".pdf", b"%PDF-1.4 and no more", "damaged", id="cut PDF"),
        pytest.param(".pdf", pdf("words")[:-200], "damaged|no text", id="PDF without its end"),
        pytest.param(".pdf", pdf(""), "no text: a scan", id="PDF without text"),
        pytest.param(".docx", b"PK\3\4 and no more", "damaged", id="broken Word"),
        pytest.param(".docx", packed({"a": b"b"}), "damaged", id="archive that is not Word"),
        pytest.param(
            ".docx",
            packed({"word/document.xml": b"0" * (260 * 2**20)}),
            "unpacks to more than 256 MiB",
            id="archive that unpacks to far more",
        ),
        pytest.param(".xlsx", b"\xd0\xcf\x11\xe0 old Excel", "damaged", id="old Excel"),
        pytest.param(".html", b"<html></html>", "holds no text", id="empty web page"),
        pytest.param(".pdf", b"", "damaged", id="nothing"),
    ],
)
def test_what_cannot_be_read_is_named_and_the_next_file_is_read(
    converter: Converter, suffix: str, content: bytes, reason: str
) -> None:
    with pytest.raises(UnreadableError, match=reason):
        converter.convert(suffix, content)

    assert converter.convert(".html", b"<p>next</p>") == ["next"]


def test_a_deep_web_page_does_no_harm(converter: Converter) -> None:
    (page,) = converter.convert(".html", b"<div>" * 20_000 + b"deep")

    assert "deep" in page


def test_a_conversion_that_takes_too_long_is_ended() -> None:
    with Converter(seconds=0.001) as converter:
        for _ in range(2):
            with pytest.raises(UnreadableError, match=r"takes longer than 0.001 s"):
                converter.convert(".pdf", pdf("text"))


def test_a_conversion_is_ended_by_closing() -> None:
    closing = threading.Event()
    content = pdf(*["A long line of text. " * 20] * 200)
    with Converter(closing=closing) as converter:
        timer = threading.Timer(0.2, closing.set)
        timer.start()
        began = time.monotonic()
        with pytest.raises(UnreadableError, match="not read to the end"):
            converter.convert(".pdf", content)
        timer.join()
    assert time.monotonic() - began < 10


def test_a_process_that_died_is_started_anew(converter: Converter) -> None:
    assert converter.convert(".html", b"<p>one</p>") == ["one"]
    assert converter.process_id is not None
    subprocess.run(["kill", "-9", str(converter.process_id)], check=True)  # noqa: S603, S607
    while converter.process_id is not None:
        time.sleep(0.01)

    assert "two" in converter.convert(".html", b"<p>two</p>")[0]


def test_the_process_sees_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-secret")
    with Converter() as converter:
        converter.convert(".html", b"<p>one</p>")
        environment = Path(f"/proc/{converter.process_id}/environ").read_bytes()

    assert b"PATH=" in environment
    assert b"a-secret" not in environment


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


async def found(knowledge_base: LocalKnowledgeBase, query: str) -> Sequence[tuple[str, str]]:
    available = await knowledge_base.assistants()
    passages = (await knowledge_base.search(query, assistants=available, limit=3)).passages
    return [(passage.document, passage.location) for passage in passages]


async def test_documents_of_every_kind_are_searched_and_bad_ones_named(tmp_path: Path) -> None:
    folder = tmp_path / "knowledge"
    write(
        folder,
        {
            "a/rules.pdf": pdf(
                "第一章 总则\n年假有十天。", "第二章 差旅\n北京住宿上限为六百元。"
            ),
            "a/pump.docx": word("# Pump", "The pump is oiled every 400 hours."),
            "a/prices.xlsx": excel({"Prices": [["item", "price"], ["valve", 17]]}),
            "a/duck.html": b"<h1>Ducks</h1><p>A duck swims in the pond.</p>",
            "a/broken.pdf": b"%PDF-1.4",
            "a/slides.pptx": b"PK",
        },
    )
    knowledge_base = LocalKnowledgeBase(folder, tmp_path / "data")
    try:
        assert ("rules.pdf", "第二章 差旅 › p. 2") in await found(
            knowledge_base, "北京住宿上限"
        )
        assert ("pump.docx", "Pump") in await found(knowledge_base, "pump oiled")
        assert ("prices.xlsx", "Prices") in await found(knowledge_base, "valve price")
        assert ("duck.html", "Ducks") in await found(knowledge_base, "duck swims pond")
        skipped = await knowledge_base.skipped()
    finally:
        await knowledge_base.aclose()
    assert sorted(skipped) == ["a/broken.pdf", "a/slides.pptx"]
    assert "damaged" in skipped["a/broken.pdf"]
    assert "PDF, Word (.docx)" in skipped["a/slides.pptx"]


async def test_what_was_converted_is_not_converted_again(tmp_path: Path) -> None:
    folder = tmp_path / "knowledge"
    write(folder, {"a/pump.docx": word("# Pump", "The pump is oiled.")})
    for name in ("pump.docx", "moved.docx"):
        knowledge_base = LocalKnowledgeBase(folder, tmp_path / "data")
        try:
            assert await found(knowledge_base, "pump oiled") == [(name, "Pump")]
        finally:
            await knowledge_base.aclose()
        (kept,) = (tmp_path / "data" / "knowledge-text").glob("*/*.json")
        # what is kept is what is read, so this stands for the conversion
        kept.write_text('["# Pump\\n\\nThe pump is oiled."]')
        (folder / "a" / name).rename(folder / "a" / "moved.docx")

    (folder / "a" / "moved.docx").unlink()
    knowledge_base = LocalKnowledgeBase(folder, tmp_path / "data")
    assert await knowledge_base.assistants() == ()
    await knowledge_base.aclose()
    assert list((tmp_path / "data" / "knowledge-text").glob("*/*")) == []


WITHOUT_THE_EXTRA = """
import sys
sys.modules["markitdown"] = None  # as if it were not installed
from pathlib import Path
from chatbot.knowledge.local.folder import list_folder
for name, reason in sorted(list_folder(Path(sys.argv[1])).skipped.items()):
    print(f"{name}: {reason}")
"""


def test_without_the_extra_such_files_are_named_with_what_to_install(tmp_path: Path) -> None:
    names = [f"a{suffix}" for suffix in sorted(CONVERTED)]
    write(tmp_path, {**dict.fromkeys(names, b"content"), "a.md": b"# A\n\nText."})

    done = subprocess.run(  # noqa: S603 - this Python, with a program of ours
        [sys.executable, "-c", WITHOUT_THE_EXTRA, str(tmp_path)],
        cwd=PROJECT,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )

    assert done.stdout.splitlines() == [
        f"{name}: a {name[1:]} file needs a package: pip install 'ragflow-chatbot[documents]'"
        for name in names
    ]
