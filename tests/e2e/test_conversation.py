import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from chatbot.settings import Settings
from graphs import Answer, open_chatbot
from tests.servers.model import ChatRequest, ModelServer, Script, answer, call
from tests.servers.mongod import Mongod
from tests.servers.ragflow import RagflowServer, Version


@dataclass(frozen=True)
class Dialogue:
    """A question, an elliptical follow-up, and small talk, with what the answers rest on."""

    question: str
    fact: str
    follow_up: str
    subject: str
    follow_up_fact: str
    small_talk: str


CHINESE = Dialogue(
    question="瓦尔登湖的作者是谁？",
    fact="梭罗",
    follow_up="那它的风景怎么样",
    subject="瓦尔登湖",
    follow_up_fact="风景",
    small_talk="谢谢你，今天先到这里",
)
ENGLISH = Dialogue(
    question="Who wrote Walden?",
    fact="Thoreau",
    follow_up="And what is its scenery like?",
    subject="Walden",
    follow_up_fact="pond",
    small_talk="Thanks, have a nice day!",
)
DIALOGUES = [pytest.param(CHINESE, id="Chinese"), pytest.param(ENGLISH, id="English")]


def brain(dialogue: Dialogue) -> Callable[[ChatRequest], Script]:
    """Return a model that routes by the dialogue and quotes the first passage it is given."""
    stand_alone = f"{dialogue.subject}: {dialogue.follow_up}"
    routes = {
        dialogue.question: call("knowledge_base", {"assistants": ["瓦尔登湖"]}),
        dialogue.follow_up: call(
            "knowledge_base", {"assistants": ["瓦尔登湖"], "question": stand_alone}
        ),
        dialogue.small_talk: call("general_chat"),
    }

    def reply(request: ChatRequest) -> Script:
        if request.tools:
            return routes[request.question]
        if quoted := re.findall(
            r'<passage number="(\d+)"[^>]*>\n(.*?)\n</passage>', request.question, re.DOTALL
        ):
            facts = (dialogue.fact, dialogue.follow_up_fact)
            asked = request.question.rpartition("<question>")[2]
            fact = facts[dialogue.follow_up in asked]
            number, text = next(pair for pair in quoted if fact in pair[1])
            return answer(f"{text} [{number}]")
        return answer("You are welcome. 不客气！")

    return reply


async def converse(settings: Settings, dialogue: Dialogue) -> Sequence[Answer]:
    questions = (dialogue.question, dialogue.follow_up, dialogue.small_talk)
    async with open_chatbot(settings) as bot:
        answers = [await bot.ask(question, session_id="walk") for question in questions]
    async with open_chatbot(settings) as bot:
        turns = await bot.turns("walk")
    assert [turn.answer for turn in turns] == [reply.text for reply in answers]
    return answers


def check(answers: Sequence[Answer], dialogue: Dialogue) -> None:
    first, second, third = answers
    assert [reply.metadata["intent"] for reply in answers] == [
        *("knowledge_base", "knowledge_base", "general_chat")
    ]
    assert dialogue.fact in first.text
    assert first.metadata["enhanced_query"] == dialogue.question
    assert dialogue.subject in second.metadata["enhanced_query"]
    assert dialogue.follow_up_fact in second.text
    for reply in (first, second):
        numbers = [citation["number"] for citation in reply.citations]
        assert numbers
        assert all(f"[{number}]" in reply.text for number in numbers)
        assert "alden" in reply.citations[0]["document"] + str(
            reply.metadata["assistants"]
        ) or ("瓦尔登湖" in reply.citations[0]["document"])
    assert not third.citations
    assert all(reply.metadata["degraded"] == [] for reply in answers)


@pytest.mark.parametrize("dialogue", DIALOGUES)
async def test_three_turns_with_nothing_configured(dialogue: Dialogue, tmp_path: Path) -> None:
    check(await converse(Settings(chatbot_data_dir=tmp_path), dialogue), dialogue)


@pytest.mark.parametrize("version", ["0.22", "0.27"])
@pytest.mark.parametrize("dialogue", DIALOGUES)
async def test_three_turns_with_every_server(
    dialogue: Dialogue, version: Version, tmp_path: Path, mongod: Mongod
) -> None:
    with ExitStack() as stack:
        model = stack.enter_context(ModelServer(brain(dialogue)))
        ragflow = stack.enter_context(RagflowServer(version=version))
        settings = Settings(
            chatbot_data_dir=tmp_path,
            openai_base_url=model.base_url,
            llm_model="scripted",
            ragflow_base_url=ragflow.url,
            ragflow_api_key=SecretStr(ragflow.key),
            mongodb_uri=SecretStr(mongod.uri),
            mongodb_db=f"walk-{version[-2:]}-{dialogue.subject.encode().hex()[:12]}",
        )
        answers = await converse(settings, dialogue)
        assert len(model.seen) == 6
    check(answers, dialogue)
    assert "瓦尔登湖" in answers[0].metadata["assistants"]


async def test_the_conversation_goes_on_while_mongodb_is_away(tmp_path: Path) -> None:
    with Mongod() as server:
        settings = Settings(
            chatbot_data_dir=tmp_path, mongodb_uri=SecretStr(server.uri), mongodb_db="away"
        )
        questions = [ENGLISH.question, ENGLISH.follow_up, ENGLISH.small_talk]
        async with open_chatbot(settings) as bot:
            first = await bot.ask(questions[0], session_id="s")
            assert first.metadata["degraded"] == []
            server.kill()
            second = await bot.ask(questions[1], session_id="s")
            assert "Walden" in second.metadata["enhanced_query"]
            assert {entry["part"] for entry in second.metadata["degraded"]} == {"history"}
            assert await bot.health()
            server.start()
            third = await bot.ask(questions[2], session_id="s")
            assert third.metadata["intent"] == "general_chat"
        async with open_chatbot(settings) as bot:
            turns = await bot.turns("s")
            assert [turn.question for turn in turns] == questions
            assert await bot.health() == {}


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        pytest.param("refused", "知识库现在连接不上", id="nothing listens"),
        pytest.param("key", "拒绝了访问", id="the key is refused"),
    ],
)
async def test_a_dead_ragflow_gives_an_honest_answer(
    fault: str, told: str, tmp_path: Path
) -> None:
    with ModelServer(brain(CHINESE)) as model, RagflowServer() as ragflow:
        if fault == "refused":
            ragflow.pause()
        settings = Settings(
            chatbot_data_dir=tmp_path,
            openai_base_url=model.base_url,
            llm_model="scripted",
            ragflow_base_url=ragflow.url,
            ragflow_api_key=SecretStr(ragflow.key if fault == "refused" else "wrong"),
        )
        async with open_chatbot(settings) as bot:
            reply = await bot.ask(CHINESE.question)
    assert told in reply.text
    assert reply.citations == []
    assert reply.metadata["degraded"][0]["part"] == "knowledge"
    assert "wrong" not in str(reply)


@pytest.fixture
def own_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    (folder / "garden").mkdir(parents=True)
    (folder / "garden" / "roses.md").write_text(
        "# Roses\n\n## Pruning\n\nPrune roses in late February, above the third bud.\n",
        encoding="utf-8",
    )
    return folder


async def test_a_changed_file_is_found_without_a_restart(
    own_folder: Path, tmp_path: Path
) -> None:
    settings = Settings(chatbot_data_dir=tmp_path / "data", knowledge_dir=own_folder)
    question = "How are tulip bulbs stored over the winter?"
    async with open_chatbot(settings) as bot:
        pruning: Any = await bot.ask("When are roses pruned?")
        assert "February" in pruning.text
        assert "sawdust" not in (await bot.ask(question, session_id="a")).text
        (own_folder / "garden" / "tulips.md").write_text(
            "# Tulips\n\nTulip bulbs are stored in dry sawdust over the winter.\n",
            encoding="utf-8",
        )
        for attempt in range(200):
            reply = await bot.ask(question, session_id=f"b{attempt}")
            if "sawdust" in reply.text:
                break
    assert "sawdust" in reply.text
    assert reply.citations[0]["document"] == "tulips.md"
