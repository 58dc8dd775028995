"""The embedded knowledge base: what it finds, notices and survives."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatbot.domain import Assistant, Passage
from chatbot.errors import KnowledgeBaseError
from chatbot.knowledge.local import LocalKnowledgeBase
from chatbot.knowledge.local import knowledge_base as module
from tests.stopwatch import Stopwatch

PROJECT = Path(__file__).parents[3]
SAMPLE = PROJECT / "examples" / "knowledge"


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_md", ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


async def find(knowledge_base: LocalKnowledgeBase, query: str) -> list[Passage]:
    available = await knowledge_base.assistants()
    found = await knowledge_base.search(query, assistants=available, limit=6)
    return list(found.passages)


@pytest.fixture
async def sample(tmp_path: Path) -> AsyncIterator[LocalKnowledgeBase]:
    knowledge_base = LocalKnowledgeBase(SAMPLE, tmp_path)
    yield knowledge_base
    await knowledge_base.aclose()


@pytest.fixture
async def folder(tmp_path: Path) -> Path:
    path = tmp_path / "knowledge"
    write(path, pump__manual_md="# Pump\n\nThe pump is oiled every 400 hours.")
    return path


@pytest.fixture
async def knowledge_base(folder: Path, tmp_path: Path) -> AsyncIterator[LocalKnowledgeBase]:
    opened = LocalKnowledgeBase(folder, tmp_path / "data")
    yield opened
    await opened.aclose()


@pytest.mark.parametrize(
    ("query", "document", "text"),
    [
        pytest.param("瓦尔登湖是谁写的", "瓦尔登湖.md", "梭罗", id="author, Chinese"),
        pytest.param("Who wrote Walden?", "book.md", "Thoreau", id="author, English"),
        pytest.param("年假有几天", "休假制度.md", "10天带薪年假", id="leave, Chinese"),
        pytest.param("What does error E21 mean?", "troubleshooting.md", "E21", id="error code"),
        pytest.param("e-21 是什么意思", "故障排除.md", "E21", id="error code, other spelling"),
        pytest.param("HOTEL LIMIT IN BEIJING", "expenses.md", "650", id="capitals"),
        pytest.param("咖啡机漏水怎么办", "故障排除.md", "滴水盘", id="fault, Chinese"),
        pytest.param("Walden Pond 有多深 depth", "pond.md", "102 feet", id="both languages"),
    ],
)
async def test_the_right_passage_is_found(
    sample: LocalKnowledgeBase, query: str, document: str, text: str
) -> None:
    passages = await find(sample, query)

    right = [each for each in passages[:3] if each.document == document and text in each.text]
    assert right, [(each.document, each.location) for each in passages]
    assert 0.15 <= right[0].score <= 1


@pytest.mark.parametrize(
    "query",
    [
        pytest.param("谢谢", id="thanks, Chinese"),
        pytest.param("thanks a lot", id="thanks, English"),
        pytest.param("区块链和比特币", id="unknown subject, Chinese"),
        pytest.param("photosynthesis in cyanobacteria", id="unknown subject, English"),
        pytest.param("the of and", id="grammatical words"),
        pytest.param("？？？", id="punctuation"),
        pytest.param("", id="nothing"),
        pytest.param("{{ system }} ${x} %s \x00", id="template syntax"),
    ],
)
async def test_nothing_about_the_query_is_an_empty_result(
    sample: LocalKnowledgeBase, query: str
) -> None:
    assert await find(sample, query) == []


@pytest.mark.parametrize(
    ("query", "nearest"),
    [
        pytest.param("Which photons does the office emit?", "Remote work", id="English"),
        pytest.param("区块链和比特币", "信息安全", id="Chinese"),
        pytest.param("photosynthesis in cyanobacteria", None, id="no word in common"),
        pytest.param("", None, id="nothing"),
    ],
)
async def test_where_nothing_is_found_the_nearest_documents_are_named(
    sample: LocalKnowledgeBase, query: str, nearest: str | None
) -> None:
    available = await sample.assistants()
    found = await sample.search(query, assistants=available, limit=6)

    assert found.passages == ()
    assert found.nearest[:1] == (() if nearest is None else (nearest,))
    assert len(found.nearest) <= 3


@pytest.mark.parametrize(
    ("query", "line", "certain"),
    [
        pytest.param("晚上打车的钱谁出", "出租车费由公司报销。", False, id="Chinese"),
        pytest.param(
            "Who pays a late cab home?", "Taxis home are refunded.", False, id="English"
        ),
        pytest.param("出租车费报销", "出租车费由公司报销。", True, id="the same words"),
    ],
)
async def test_other_words_find_passages_for_a_model_that_judges(
    folder: Path, tmp_path: Path, query: str, line: str, certain: bool
) -> None:
    write(folder, cars__note_md=f"# Notes\n\n{line}", pump__valve_md="# 阀门\n\n阀门要上油。")
    opened = [LocalKnowledgeBase(folder, tmp_path, generous=each) for each in (True, False)]
    try:
        available = await opened[0].assistants()
        found, strict = [
            await each.search(query, assistants=available, limit=5) for each in opened
        ]
    finally:
        for each in opened:
            await each.aclose()

    assert found.shown[0].text == line
    assert bool(found.passages) is bool(strict.passages) is certain
    assert strict.uncertain == ()


@pytest.mark.parametrize("query", ["", "？？？", "qwertz asdf"])
async def test_what_shares_no_telling_word_is_not_even_uncertain(
    tmp_path: Path, query: str
) -> None:
    generous = LocalKnowledgeBase(SAMPLE, tmp_path, generous=True)
    try:
        found = await generous.search(query, assistants=await generous.assistants(), limit=5)
    finally:
        await generous.aclose()

    assert not found.passages
    assert not found.uncertain


async def test_passages_in_the_language_of_the_question_come_first(
    sample: LocalKnowledgeBase,
) -> None:
    assert (await find(sample, "E12是什么意思"))[0].document == "故障排除.md"
    assert (await find(sample, "What does E12 mean?"))[0].document == "troubleshooting.md"


async def test_a_passage_says_where_it_stands(sample: LocalKnowledgeBase) -> None:
    passage = (await find(sample, "How long must a password be?"))[0]

    assert passage.document == "it-security.md"
    assert passage.document_id == "handbook/it-security.md"
    assert passage.location == "IT security › Passwords"
    assert passage.assistant == "员工手册 Employee Handbook"
    assert passage.id.startswith("handbook/it-security.md#")


async def test_the_sample_is_ready_within_a_second(tmp_path: Path) -> None:
    knowledge_base = LocalKnowledgeBase(SAMPLE, tmp_path)
    stopwatch = Stopwatch()
    try:
        await find(knowledge_base, "年假有几天")
    finally:
        await knowledge_base.aclose()
    assert stopwatch.seconds() < 2  # a second, where the processor is quick


async def test_assistants_are_the_sub_folders(folder: Path, tmp_path: Path) -> None:
    write(
        folder,
        readme_md="# About this folder\n\nText.",
        deep__one__two__note_md="# A deep note\n\nText.",
        named__a_md="# A\n\nText.",
        twin__b_md="# B\n\nText.",
        nothing__empty_md="",
    )
    (folder / "named" / "assistant.toml").write_text('name = "The Name"\ndescription = "D"')
    (folder / "twin" / "assistant.toml").write_text('name = "The Name"')
    (folder / "deep" / "assistant.toml").write_text("name = broken")
    knowledge_base = LocalKnowledgeBase(folder, tmp_path / "data")

    found = await knowledge_base.assistants()
    skipped = await knowledge_base.skipped()
    await knowledge_base.aclose()

    assert sorted(found, key=lambda each: each.id) == [
        Assistant(id=".", name="knowledge", description="About this folder"),
        Assistant(id="deep", name="deep", description="A deep note"),
        Assistant(id="named", name="The Name", description="D"),
        Assistant(id="pump", name="pump", description="Pump"),
        Assistant(id="twin", name="The Name (twin)", description="B"),
    ]
    assert set(skipped) == {"nothing/empty.md", "deep/assistant.toml"}


async def test_only_the_chosen_assistants_are_searched(
    folder: Path, knowledge_base: LocalKnowledgeBase
) -> None:
    write(folder, other__note_md="# Note\n\nA pump stands in the cellar.")
    pump, other = sorted(await knowledge_base.assistants(), key=lambda each: each.id)[::-1]

    found = await knowledge_base.search("pump", assistants=[other], limit=5)
    none = await knowledge_base.search("pump", assistants=[], limit=5)

    assert [each.assistant for each in found.passages] == ["other"]
    assert pump.id == "pump"
    assert none.passages == ()


async def test_an_assistant_that_is_gone_is_named(knowledge_base: LocalKnowledgeBase) -> None:
    gone = Assistant(id="gone", name="Gone")
    here = await knowledge_base.assistants()

    found = await knowledge_base.search("pump oil", assistants=[gone, *here], limit=5)

    assert found.passages
    assert found.failures == {"Gone": "The assistant Gone does not exist any more."}
    with pytest.raises(KnowledgeBaseError, match="Gone") as caught:
        await knowledge_base.search("pump", assistants=[gone], limit=5)
    assert caught.value.kind == "not_found"


async def test_changes_in_the_folder_are_noticed(
    folder: Path, knowledge_base: LocalKnowledgeBase
) -> None:
    assert (await find(knowledge_base, "oiled hours"))[0].text.endswith("400 hours.")

    write(folder, pump__manual_md="# Pump\n\nThe pump is oiled every 250 hours.")
    write(folder, pump__valves_md="# Valves\n\nValves are ground in spring.")
    await asyncio.sleep(module.CHECK_SECONDS)
    changed = await find(knowledge_base, "oiled hours")
    added = await find(knowledge_base, "valves spring")

    (folder / "pump" / "valves.md").unlink()
    await asyncio.sleep(module.CHECK_SECONDS)
    removed = await find(knowledge_base, "valves spring")

    assert changed[0].text.endswith("250 hours.")
    assert added[0].document == "valves.md"
    assert removed == []


async def test_only_what_changed_is_read_again(folder: Path, tmp_path: Path) -> None:
    first = LocalKnowledgeBase(folder, tmp_path / "data")
    assert await find(first, "pump oiled")
    await first.aclose()
    manual = folder / "pump" / "manual.md"
    # same name, size and time: the saved index is trusted, the file is not opened
    found = manual.stat()
    manual.write_text("# Pump\n\nThe duck is oiled every 400 hours.")
    os.utime(manual, ns=(found.st_atime_ns, found.st_mtime_ns))
    write(folder, pump__valves_md="# Valves\n\nValves are ground in spring.")

    second = LocalKnowledgeBase(folder, tmp_path / "data")
    try:
        assert await find(second, "pump oiled")
        assert await find(second, "valves spring")
    finally:
        await second.aclose()


async def test_a_missing_folder_is_said_and_found_later(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    knowledge_base = LocalKnowledgeBase(folder, tmp_path / "data")
    try:
        reason = await knowledge_base.check()
        assert "later does not exist" in reason
        assert "KNOWLEDGE_DIR" in reason
        with pytest.raises(KnowledgeBaseError, match="does not exist"):
            await knowledge_base.assistants()

        write(folder, note_md="# Note\n\nThe duck swims.")
        await asyncio.sleep(module.CHECK_SECONDS)

        assert await knowledge_base.check() == ""
        assert await find(knowledge_base, "duck swims")
    finally:
        await knowledge_base.aclose()


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: path.mkdir(), id="empty folder"),
        pytest.param(lambda path: write(path, a_md="", b_md="# Only a heading"), id="no text"),
        pytest.param(
            lambda path: (path.mkdir(), (path / "a.md").write_bytes(b"\0\1\2" * 99)),
            id="binary",
        ),
    ],
)
async def test_a_folder_without_text_is_said(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path / "knowledge")
    for _ in range(2):  # the second opens what the first has saved
        knowledge_base = LocalKnowledgeBase(tmp_path / "knowledge", tmp_path / "data")
        try:
            assert "There is no document" in await knowledge_base.check()
            assert await knowledge_base.assistants() == ()
            assert await find(knowledge_base, "anything") == []
        finally:
            await knowledge_base.aclose()


async def test_bad_files_do_not_hide_good_ones(
    folder: Path, knowledge_base: LocalKnowledgeBase
) -> None:
    (folder / "pump" / "picture.md").write_bytes(b"\x89PNG\0\0")
    (folder / "pump" / "windows.txt").write_bytes("水泵每年检修一次。".encode("gb18030"))
    (folder / "pump" / "line.md").write_text("word " * 200_000)

    assert (await find(knowledge_base, "pump oiled"))[0].document == "manual.md"
    assert (await find(knowledge_base, "水泵检修"))[0].document == "windows.txt"
    assert await knowledge_base.skipped() == {"pump/picture.md": "it is not a text file"}


async def test_an_unwritable_data_folder_costs_only_the_saved_index(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "data").write_text("a file where a folder should be")
    knowledge_base = LocalKnowledgeBase(folder, tmp_path / "data")
    try:
        assert await find(knowledge_base, "pump oiled")
    finally:
        await knowledge_base.aclose()


@pytest.mark.parametrize(
    ("file", "content"),
    [
        pytest.param("manifest.json", b"{", id="broken manifest"),
        pytest.param("manifest.json", b'{"version": 0, "documents": []}', id="other version"),
        pytest.param("matrix_scores.npy", b"", id="empty array"),
        pytest.param("matrix_scores.npy", b"\x93NUMPY nonsense", id="broken array"),
        pytest.param("passages.bin", b"cut", id="cut passages"),
        pytest.param("vocabulary_hashes.npy", b"", id="missing words"),
        pytest.param("part_starts.npy", None, id="missing file"),
    ],
)
async def test_a_damaged_index_is_made_anew(
    folder: Path, tmp_path: Path, file: str, content: bytes | None
) -> None:
    first = LocalKnowledgeBase(folder, tmp_path / "data")
    assert await find(first, "pump oiled")
    await first.aclose()
    (saved,) = (tmp_path / "data" / "knowledge-index").glob(f"*/*/{file}")
    if content is None:
        saved.unlink()
    else:
        saved.write_bytes(content)

    second = LocalKnowledgeBase(folder, tmp_path / "data")
    try:
        assert await find(second, "pump oiled")
    finally:
        await second.aclose()


async def test_old_indexes_are_removed(folder: Path, tmp_path: Path) -> None:
    for version in range(4):
        write(folder, pump__manual_md=f"# Pump\n\nThe pump is oiled, version {version}.")
        knowledge_base = LocalKnowledgeBase(folder, tmp_path / "data")
        assert await find(knowledge_base, "pump oiled")
        await knowledge_base.aclose()

    assert len(list((tmp_path / "data" / "knowledge-index").glob("*/*"))) == 2


PROGRAM = """
import asyncio, sys
from pathlib import Path
from chatbot.knowledge.local import LocalKnowledgeBase

async def main():
    knowledge_base = LocalKnowledgeBase(Path(sys.argv[1]), Path(sys.argv[2]))
    available = await knowledge_base.assistants()
    found = await knowledge_base.search("年假有几天", assistants=available, limit=3)
    print(found.passages[0].document)
    await knowledge_base.aclose()

asyncio.run(main())
"""


def test_processes_that_start_at_once_share_the_index(tmp_path: Path) -> None:
    started = [
        subprocess.Popen(  # noqa: S603 - this Python, with a program of ours
            [sys.executable, "-c", PROGRAM, str(SAMPLE), str(tmp_path)],
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(3)
    ]
    for process in started:
        out, errors = process.communicate(timeout=60)
        assert out.decode().strip().endswith("休假制度.md"), errors.decode()
        assert b"Traceback" not in errors

    (saved,) = (tmp_path / "knowledge-index").iterdir()
    assert len(list(saved.iterdir())) == 1


async def test_many_searches_at_once_do_not_wait_for_each_other(
    sample: LocalKnowledgeBase,
) -> None:
    await sample.assistants()

    found = await asyncio.gather(*(find(sample, f"年假有几天 {each}") for each in range(20)))

    assert {passages[0].document for passages in found} == {"休假制度.md"}


async def test_a_cancelled_search_does_not_stop_the_index(folder: Path, tmp_path: Path) -> None:
    knowledge_base = LocalKnowledgeBase(folder, tmp_path / "data")
    try:
        search = asyncio.create_task(find(knowledge_base, "pump"))
        await asyncio.sleep(0)
        search.cancel()
        with pytest.raises(asyncio.CancelledError):
            await search
        assert await find(knowledge_base, "pump oiled")
    finally:
        await knowledge_base.aclose()


async def test_closing_ends_the_reading_of_a_large_folder(tmp_path: Path) -> None:
    folder = tmp_path / "large"
    for number in range(300):
        write(folder, **{f"a__{number}_md": f"# Note {number}\n\n" + "一句话。" * 2000})
    knowledge_base = LocalKnowledgeBase(folder, tmp_path / "data")
    search = asyncio.create_task(find(knowledge_base, "note"))
    await asyncio.sleep(0.1)
    stopwatch = Stopwatch()

    await knowledge_base.aclose()

    assert stopwatch.seconds() < 3
    with pytest.raises(KnowledgeBaseError, match="closed"):
        await search


async def test_it_serves_one_event_loop_after_another(folder: Path, tmp_path: Path) -> None:
    knowledge_base = LocalKnowledgeBase(folder, tmp_path / "data")
    for _ in range(2):
        passages = await asyncio.to_thread(asyncio.run, find(knowledge_base, "pump oiled"))
        assert passages
    await knowledge_base.aclose()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(query=st.text(max_size=200))
async def test_any_query_is_harmless(sample: LocalKnowledgeBase, query: str) -> None:
    for passage in await find(sample, query):
        assert 0 <= passage.score <= 1


async def test_a_cited_document_is_given_as_it_lies_in_the_folder(
    folder: Path, knowledge_base: LocalKnowledgeBase
) -> None:
    (passage,) = await find(knowledge_base, "pump oiled")

    assistants = await knowledge_base.assistants()
    found = await knowledge_base.document(passage.document_id, assistants=assistants)

    assert await knowledge_base.document(passage.document_id, assistants=[]) is None
    assert found is not None
    assert found.name == "manual.md"
    assert found.media_type == "text/markdown"
    assert found.content == (folder / "pump" / "manual.md").read_bytes()


@pytest.mark.parametrize(
    "document_id",
    [
        pytest.param("../secret.md", id="the folder above"),
        pytest.param("pump/../../secret.md", id="up on the way"),
        pytest.param("pump/../pump/manual.md", id="another path to a document"),
        pytest.param("./pump/manual.md", id="a path with a dot"),
        pytest.param("pump//manual.md", id="two slashes"),
        pytest.param("pump/assistant.toml", id="a profile"),
        pytest.param("pump/skipped.md", id="a file that is not searched"),
        pytest.param("pump/.hidden.md", id="a hidden file"),
        pytest.param("pump/link.md", id="a link out of the folder"),
        pytest.param("pump", id="a folder"),
        pytest.param("", id="nothing"),
        pytest.param("pump/manual.md\0", id="a null character"),
        pytest.param("x" * 5000, id="a long name"),
    ],
)
async def test_nothing_but_documents_is_given(
    folder: Path, tmp_path: Path, knowledge_base: LocalKnowledgeBase, document_id: str
) -> None:
    (tmp_path / "secret.md").write_text("secret")
    (folder / "pump" / "assistant.toml").write_text('name = "pump"')
    (folder / "pump" / "skipped.md").write_bytes(b"\0\0")
    (folder / "pump" / ".hidden.md").write_text("hidden")
    (folder / "pump" / "link.md").symlink_to(tmp_path / "secret.md")

    assistants = await knowledge_base.assistants()
    for name in (document_id, str(tmp_path / "secret.md")):
        assert await knowledge_base.document(name, assistants=assistants) is None


async def test_a_document_of_another_assistant_is_not_given(
    folder: Path, knowledge_base: LocalKnowledgeBase
) -> None:
    (folder / "canteen").mkdir()
    (folder / "canteen" / "menu.md").write_text("# Menu\n\nSoup is served at noon.")
    (passage,) = await find(knowledge_base, "pump oiled")
    assistants = await knowledge_base.assistants()
    others = [each for each in assistants if each.name != passage.assistant]

    assert others
    assert await knowledge_base.document(passage.document_id, assistants=others) is None


async def test_the_first_index_of_a_large_folder_is_not_waited_for_for_ever(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "large"
    for number in range(60):
        write(folder, **{f"a__{number}_md": f"# Note {number}\n\n" + "一句话。" * 2000})
    knowledge_base = LocalKnowledgeBase(folder, tmp_path / "data", first_seconds=0.1)
    try:
        with pytest.raises(KnowledgeBaseError, match="read for the first time") as caught:
            await find(knowledge_base, "note")
        assert caught.value.retryable
        assert "read for the first time" in await knowledge_base.check()

        assert await knowledge_base.skipped() == {}
        assert await find(knowledge_base, "note 17")
    finally:
        await knowledge_base.aclose()
