import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from blockbuster import blockbuster_ctx

from chatbot.citations import CitationFilter
from chatbot.domain import Assistant, Passage
from chatbot.errors import KnowledgeBaseError
from chatbot.knowledge.ragflow import RagflowAnswers, RagflowKnowledgeBase, RagflowTransport
from tests.servers.ragflow import RagflowServer, Version
from tests.servers.ragflow_completion import PROMPT
from tests.servers.ragflow_knowledge import Chat

QUESTION = "How long does the warranty of the X200 pump last?"
BEST = "The warranty of the X200 pump lasts 24 months from the date of purchase."
ANSWER = f"{BEST} [ID:0]"


@asynccontextmanager
async def opened(
    server: RagflowServer, *, silence_seconds: float = 30
) -> AsyncIterator[RagflowAnswers]:
    transport = RagflowTransport(
        server.url, server.key, timeout_seconds=30, retry_seconds=(0.01,), recheck_seconds=0.05
    )
    answers = RagflowAnswers(
        transport, RagflowKnowledgeBase(transport), silence_seconds=silence_seconds
    )
    try:
        yield answers
    finally:
        await answers.close()


async def answered(
    answers: RagflowAnswers, question: str = QUESTION, *, assistant: str = "X200 manual"
) -> tuple[str, str, Sequence[Passage]]:
    """Return the text, the thoughts and the passages of a streamed answer."""
    (chosen,) = (each for each in await answers.assistants() if each.name == assistant)
    text = thoughts = ""
    passages: Sequence[Passage] = ()
    async for piece in answers.answer(question, chosen):
        text = piece.text if piece.replaces else text + piece.text
        thoughts += piece.thought
        passages = piece.passages or passages
    return text, thoughts, passages


@pytest.mark.parametrize("version", ["0.22", "0.27"])
@pytest.mark.parametrize(
    ("shape", "thoughts", "references"),
    [
        pytest.param("deltas", "", 3, id="what is new each time"),
        pytest.param("cumulative", "", 3, id="all of the text each time"),
        pytest.param("thinking", "Let me see.", 3, id="markers around thoughts"),
        pytest.param("think tags", "Let me see.", 3, id="tags around thoughts"),
        pytest.param("no final frame", "", 0, id="no final frame"),
        pytest.param("plain frame", "", 3, id="a single frame"),
        pytest.param("table", "", 3, id="a table, references without text"),
        pytest.param("final text", "", 3, id="all of the text again in the last frame"),
        pytest.param("json answer", "", 3, id="JSON, not a stream"),
        pytest.param("reference as dict", "", 3, id="references by their ids"),
        pytest.param("raw reference", "", 3, id="references of an old server"),
        pytest.param("bytewise", "", 3, id="byte after byte"),
        pytest.param("noise", "", 3, id="frames without an answer between"),
    ],
)
async def test_an_answer_is_read_from_every_stream(
    version: Version, shape: str, thoughts: str, references: int
) -> None:
    with RagflowServer(version=version) as server:
        server.completions.shape = shape
        async with opened(server) as answers:
            text, thought, passages = await answered(answers)
    assert (text, thought, len(passages)) == (ANSWER, thoughts, references)
    if passages:
        first = "" if shape == "table" else BEST
        assert (passages[0].text, passages[0].document) == (first, "pump.pdf")


async def test_markers_that_come_with_the_last_frame_are_read() -> None:
    with RagflowServer(version="0.22") as server:
        server.completions.shape = "marked at last"
        async with opened(server) as answers:
            text, _, _ = await answered(answers)
    assert text == f"{BEST[:-1]} ##0$$."


@pytest.mark.parametrize(
    ("shape", "kind", "sentence"),
    [
        pytest.param("error text", "unavailable", "AUTH_ERROR", id="error as the answer"),
        pytest.param("error after text", "unavailable", "AUTH_ERROR", id="error behind text"),
        pytest.param("error in text", "unavailable", "AUTH_ERROR", id="error in a piece"),
        pytest.param("code 500", "unavailable", "Miss parameter", id="error as a frame"),
        pytest.param("cut", "unavailable", "cut", id="no end"),
        pytest.param("reset", "unavailable", "cannot be reached", id="reset in the middle"),
        pytest.param("html", "protocol", "not its JSON", id="a page"),
        pytest.param("html 502", "unavailable", "502", id="a proxy's error page"),
        pytest.param("json error", "not_found", "Session not found", id="JSON, not a stream"),
        pytest.param("stalls", "unavailable", "no answer within", id="silence"),
    ],
)
async def test_a_failed_answer_is_a_typed_error(shape: str, kind: str, sentence: str) -> None:
    with RagflowServer() as server:
        server.completions.shape = shape
        seconds = 0.3 if shape == "stalls" else 30
        async with opened(server, silence_seconds=seconds) as answers:
            with pytest.raises(KnowledgeBaseError, match=sentence) as caught:
                await answered(answers)
            assert await answers.check() == ""  # RAGFlow as a whole is not given up
    assert caught.value.kind == kind
    assert "sk-model" not in caught.value.message
    assert len(server.asked("/completions")) == (2 if shape == "html 502" else 1)


@pytest.mark.parametrize("shape", ["silent", "nothing"])
async def test_no_answer_is_no_text(shape: str) -> None:
    with RagflowServer() as server:
        server.completions.shape = shape
        async with opened(server) as answers:
            text, _, _ = await answered(answers)
    assert text == ""


async def test_an_empty_answer_that_is_sent_twice_is_shown_once() -> None:
    with RagflowServer() as server:
        server.completions.shape = "empty twice"
        async with opened(server) as answers:
            text, _, passages = await answered(answers, "quantum chess")
    assert text.count("Sorry") == 1
    assert passages == ()


async def test_the_prompt_goes_no_further() -> None:
    with RagflowServer() as server:
        async with opened(server) as answers:
            (*_, manual) = await answers.assistants()
            pieces = [piece async for piece in answers.answer(QUESTION, manual)]
    assert PROMPT not in repr(pieces)


async def test_markers_are_shown_before_the_references_are_known() -> None:
    with RagflowServer() as server:
        server.completions.text = "24 months [ID:0], cleaned every 500 hours [ID:1][ID:44]."
        async with opened(server) as answers:
            text, _, passages = await answered(answers)
    live = CitationFilter(None, first=0)
    assert live.feed(text) + live.finish() == (
        "24 months [1], cleaned every 500 hours [2][45]."
    )
    live.resolve(passages)
    assert [citation.number for citation in live.cited] == [1, 2]
    saved = CitationFilter(passages, first=0)
    assert saved.feed(text) + saved.finish() == "24 months [1], cleaned every 500 hours [2]."


@pytest.mark.parametrize("version", ["0.22", "0.27"])
async def test_answers_are_passages_followed_by_what_they_cite(version: Version) -> None:
    with RagflowServer(version=version) as server:
        server.completions.text = "Clean it [ID:1]."
        async with opened(server) as answers:
            assistants = await answers.assistants()
            findings = await answers.search(QUESTION, assistants=assistants[2:], limit=3)
    answer, cited, other = findings.passages
    assert (answer.text, answer.document) == ("Clean it.", "X200 manual")
    assert cited.text.startswith("Clean the filter")
    assert other.text == BEST


async def test_an_answer_without_references_is_nothing_found() -> None:
    with RagflowServer() as server:
        async with opened(server) as answers:
            assistants = await answers.assistants()
            findings = await answers.search("quantum chess", assistants=assistants, limit=3)
    assert findings.passages == []
    assert findings.failures == {}


async def test_an_assistant_that_does_not_answer_is_named() -> None:
    with RagflowServer() as server:
        async with opened(server) as answers:
            assistants = [*await answers.assistants(), Assistant(id="gone", name="Gone")]
            findings = await answers.search(QUESTION, assistants=assistants, limit=3)
            assert list(findings.failures) == ["Gone"]
            assert findings.passages
            with pytest.raises(KnowledgeBaseError) as caught:
                await answers.search(QUESTION, assistants=assistants[-1:], limit=3)
    assert caught.value.kind == "not_found"


async def test_a_session_of_ragflow_lives_for_one_question() -> None:
    with RagflowServer() as server:
        async with opened(server) as answers:
            await answered(answers)
            await answered(answers)
            async with asyncio.timeout(20):
                while len(server.completions.deleted) < 2:  # noqa: ASYNC110 - the server tells nobody
                    await asyncio.sleep(0.01)
            assert server.completions.deleted == list(server.completions.sessions)
            assert len(server.completions.deleted) == 2


async def test_an_answer_that_is_not_read_to_its_end_leaves_nothing_behind() -> None:
    with RagflowServer() as server:
        async with opened(server) as answers:
            (*_, manual) = await answers.assistants()
            stream = answers.answer(QUESTION, manual)
            assert (await anext(stream)).text
            await stream.aclose()
        assert len(asyncio.all_tasks()) == 1


async def test_nothing_blocks_the_event_loop() -> None:
    with RagflowServer() as server, blockbuster_ctx():
        async with opened(server) as answers:
            text, _, _ = await answered(answers)
    assert text == ANSWER


@pytest.mark.parametrize("name", ["年假", "", "x" * 300])
async def test_any_question_names_a_session(name: str) -> None:
    with RagflowServer([Chat(name="A")]) as server:
        async with opened(server) as answers:
            await answered(answers, name, assistant="A")
        (created,) = server.asked("/sessions")[:1]
    assert 0 < len(created.json()["name"]) <= 60
