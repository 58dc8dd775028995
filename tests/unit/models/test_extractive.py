"""The extractive model, called as the graph calls a model."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
)

from chatbot.domain import Assistant, Findings, Passage
from chatbot.errors import KnowledgeBaseError
from chatbot.knowledge.local import LocalKnowledgeBase
from chatbot.models.extractive import ExtractiveChatModel
from tests.stopwatch import Stopwatch

SAMPLE = Path(__file__).parents[3] / "examples" / "knowledge"
HANDBOOK = "员工手册 Employee Handbook"
WALDEN = "瓦尔登湖 Walden"
MACHINE = "咖啡机手册 Espresso Machine Manual"


class ScriptedKnowledgeBase:
    """A knowledge base that knows one passage, scored as another one might score it."""

    def __init__(self, score: float = 0.3, failure: KnowledgeBaseError | None = None) -> None:
        self.score = score
        self.failure = failure
        self.asked: list[tuple[str, list[str]]] = []

    async def assistants(self) -> Sequence[Assistant]:
        if self.failure:
            raise self.failure
        return [Assistant(id="1", name="Zoo"), Assistant(id="2", name="Farm")]

    async def search(
        self, query: str, *, assistants: Sequence[Assistant], limit: int
    ) -> Findings:
        self.asked.append((query, [each.name for each in assistants]))
        passage = Passage(
            id="p",
            text="The elephant eats 150 kilograms of hay a day and sleeps standing.",
            document="elephants.pdf",
            document_id="d",
            assistant="Zoo",
            score=self.score,
        )
        return Findings(passages=[passage][:limit])

    async def check(self) -> str:
        return ""


def tools(*, follow_up: bool, names: Sequence[str] = (), chat: bool = True) -> list[Any]:
    items: dict[str, Any] = {"type": "string"}
    if names:
        items["enum"] = list(names)
    arguments: dict[str, Any] = {"assistants": {"type": "array", "items": items}}
    if follow_up:
        arguments["question"] = {"type": "string"}
    offered = [("knowledge_base", arguments)] + ([("general_chat", {})] if chat else [])
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": name,
                "parameters": {"type": "object", "properties": properties},
            },
        }
        for name, properties in offered
    ]


def conversation(*said: str) -> list[BaseMessage]:
    messages: list[BaseMessage] = [SystemMessage("You decide.")]
    for text in said[:-1]:
        messages += [HumanMessage(text), AIMessage("An answer.")]
    return [*messages, HumanMessage(said[-1])]


async def routed(
    model: ExtractiveChatModel, *said: str, **offer: Any
) -> tuple[str, dict[str, Any]]:
    bound = model.bind_tools(tools(follow_up=len(said) > 1, **offer))
    whole: AIMessageChunk | None = None
    async for chunk in bound.astream(conversation(*said)):
        assert isinstance(chunk, AIMessageChunk)
        whole = chunk if whole is None else whole + chunk
    assert whole is not None
    assert whole.content == ""
    assert whole.response_metadata["finish_reason"] == "tool_calls"
    (call,) = whole.tool_calls
    return call["name"], call["args"]


async def answered(
    model: ExtractiveChatModel, question: str, **extra: Any
) -> tuple[str, list[AIMessageChunk]]:
    message = HumanMessage(question, additional_kwargs={"question": question, **extra})
    chunks = [chunk async for chunk in model.astream([SystemMessage("Answer."), message])]
    return "".join(str(chunk.text) for chunk in chunks), chunks


@pytest.fixture
async def model(tmp_path: Path) -> AsyncIterator[ExtractiveChatModel]:
    knowledge_base = LocalKnowledgeBase(SAMPLE, tmp_path)
    yield ExtractiveChatModel(knowledge_base=knowledge_base)
    await knowledge_base.aclose()


@pytest.mark.parametrize(
    ("question", "assistant"),
    [
        pytest.param("瓦尔登湖是谁写的", WALDEN, id="book, Chinese"),
        pytest.param("Who wrote Walden?", WALDEN, id="book, English"),
        pytest.param("陪产假有多少天", HANDBOOK, id="leave, Chinese"),
        pytest.param("What is the hotel limit in Shanghai?", HANDBOOK, id="expenses, English"),
        pytest.param("E30是什么意思", MACHINE, id="error code, Chinese"),
        pytest.param("How do I descale the machine?", MACHINE, id="descaling, English"),
        pytest.param("warranty", MACHINE, id="bare keyword, English"),
        pytest.param("病假", HANDBOOK, id="bare keyword, Chinese"),
        pytest.param(
            "Hello, could you tell me how long the probation lasts?",
            HANDBOOK,
            id="after a greeting, as a request",
        ),
        pytest.param("您好！我想知道通讯补贴是多少", HANDBOOK, id="a wish to know, Chinese"),
    ],
)
async def test_a_first_question_goes_where_it_is_known(
    model: ExtractiveChatModel, question: str, assistant: str
) -> None:
    name, arguments = await routed(model, question)

    assert name == "knowledge_base"
    assert arguments["assistants"][0] == assistant
    assert "question" not in arguments


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(("谢谢",), id="thanks, Chinese"),
        pytest.param(("Hello there!",), id="greeting, English"),
        pytest.param(("瓦尔登湖是谁写的", "谢谢"), id="thanks after a question"),
        pytest.param(("瓦尔登湖是谁写的", "讲个笑话"), id="a joke, Chinese"),
        pytest.param(("瓦尔登湖是谁写的", "写一首关于爱情的诗"), id="a poem, Chinese"),
        pytest.param(("Who wrote Walden?", "thanks a lot"), id="thanks, English"),
        pytest.param(("Who wrote Walden?", "what's the weather in Paris today"), id="weather"),
        pytest.param(("Who wrote Walden?", "Tell me a joke"), id="a joke, English"),
        pytest.param(("Hello, who are you?",), id="a question after a greeting"),
        pytest.param(("嗨，你能做什么？",), id="a question after a greeting, Chinese"),
        pytest.param(("病假怎么请", "好的谢谢，再见"), id="several courtesies"),
        pytest.param(("",), id="nothing"),
        pytest.param(("{{ 7*7 }} ${x}",), id="template syntax"),
    ],
)
async def test_what_the_knowledge_does_not_know_is_general_chat(
    model: ExtractiveChatModel, said: tuple[str, ...]
) -> None:
    assert await routed(model, *said) == ("general_chat", {})


@pytest.mark.parametrize(
    ("said", "subject"),
    [
        pytest.param(("瓦尔登湖是谁写的", "那它的风景怎么样"), "瓦尔登湖", id="Chinese"),
        pytest.param(
            ("How deep is Walden Pond?", "And how large is it?"), "Walden", id="English"
        ),
        pytest.param(("保修期多长", "那水泵呢"), "保修期", id="another part, Chinese"),
        pytest.param(
            ("How long is the warranty?", "And for the pump?"),
            "warranty",
            id="another part, English",
        ),
        pytest.param(
            ("瓦尔登湖是谁写的", "谢谢", "那它的风景怎么样"),
            "瓦尔登湖",
            id="small talk between",
        ),
        pytest.param(
            ("瓦尔登湖是谁写的", "那它的风景怎么样", "那里有什么动物"),
            "瓦尔登湖",
            id="a second follow-up",
        ),
    ],
)
async def test_a_follow_up_gets_the_subject_it_goes_on_with(
    model: ExtractiveChatModel, said: tuple[str, ...], subject: str
) -> None:
    name, arguments = await routed(model, *said)

    assert name == "knowledge_base"
    assert subject in arguments["question"]
    assert arguments["question"].endswith(said[-1])


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(("瓦尔登湖是谁写的", "员工年假有几天"), id="Chinese"),
        pytest.param(
            ("Who wrote Walden?", "How often should I descale the machine?"), id="English"
        ),
        pytest.param(("E21是什么意思", "梭罗是哪一年去世的"), id="after a code"),
        pytest.param(
            ("What is the hotel limit in Beijing?", "Who translated Walden?"),
            id="another assistant",
        ),
        pytest.param(("I lost my access badge", "When did Thoreau die?"), id="hardly known"),
        pytest.param(("How often should I descale?", "password"), id="keyword, English"),
        pytest.param(("E21是什么意思", "年假"), id="keyword, Chinese"),
    ],
)
async def test_a_new_subject_stands_alone(
    model: ExtractiveChatModel, said: tuple[str, ...]
) -> None:
    name, arguments = await routed(model, *said)

    assert name == "knowledge_base"
    assert arguments["question"] == said[-1]


async def test_only_offered_assistants_are_searched_and_chosen() -> None:
    knowledge_base = ScriptedKnowledgeBase()
    model = ExtractiveChatModel(knowledge_base=knowledge_base)

    name, arguments = await routed(model, "What does the elephant eat?", names=["Zoo"])

    assert (name, arguments) == ("knowledge_base", {"assistants": ["Zoo"]})
    assert {names[0] for _, names in knowledge_base.asked} == {"Zoo"}
    assert all(len(names) == 1 for _, names in knowledge_base.asked)


async def test_without_general_chat_everything_is_looked_up(
    model: ExtractiveChatModel,
) -> None:
    name, _ = await routed(model, "讲个笑话", chat=False)

    assert name == "knowledge_base"


@pytest.mark.parametrize(
    ("score", "question", "expected"),
    [
        pytest.param(0.3, "What does the elephant eat?", "knowledge_base", id="words match"),
        pytest.param(0.3, "Good morning", "general_chat", id="nothing matches"),
        pytest.param(0.9, "大象吃什么", "knowledge_base", id="similar in another language"),
    ],
)
async def test_another_knowledge_base_serves_too(
    score: float, question: str, expected: str
) -> None:
    model = ExtractiveChatModel(knowledge_base=ScriptedKnowledgeBase(score))

    name, _ = await routed(model, question)

    assert name == expected


async def test_a_knowledge_base_that_fails_is_left_to_the_look_up() -> None:
    failure = KnowledgeBaseError("unavailable", "It is down.")
    model = ExtractiveChatModel(knowledge_base=ScriptedKnowledgeBase(failure=failure))

    assert await routed(model, "谢谢") == ("knowledge_base", {"assistants": []})
    text, _ = await answered(model, "谢谢")
    assert "LLM_MODEL" in text


async def test_the_call_streams_name_first(model: ExtractiveChatModel) -> None:
    bound = model.bind_tools(tools(follow_up=False))
    chunks = [
        chunk
        async for chunk in bound.astream(conversation("Who wrote Walden?"))
        if isinstance(chunk, AIMessageChunk)
    ]

    first, second = (chunk.tool_call_chunks[0] for chunk in chunks[:2])
    assert (first["name"], first["args"]) == ("knowledge_base", "")
    assert json.loads(second["args"] or "") == {"assistants": [WALDEN]}


async def test_a_rewrite_is_the_question_that_stands_alone(model: ExtractiveChatModel) -> None:
    message = await model.ainvoke(conversation("瓦尔登湖是谁写的", "那它的风景怎么样"))

    assert message.content == "瓦尔登湖：那它的风景怎么样"


PASSAGES = [
    {"number": 1, "text": "Pumps are oiled. Oil costs 30 yuan.", "document": "a.md"},
    {"number": 2, "text": "水泵每月加油。油价30元。", "document": "b.md"},
]


@pytest.mark.parametrize(
    ("question", "extra", "expected"),
    [
        pytest.param(
            "What does oil cost?",
            {"passages": PASSAGES, "outcome": "found"},
            "Oil costs 30 yuan. [1]",
            id="found, English",
        ),
        pytest.param(
            "油价多少",
            {"passages": PASSAGES, "outcome": "found"},
            "油价30元。 [2]",
            id="found, Chinese",
        ),
        pytest.param(
            "What does oil cost?",
            {"passages": [], "outcome": "empty"},
            "nothing about this was found",
            id="empty, English",
        ),
        pytest.param("油价多少", {"outcome": "empty"}, "没有找到", id="empty, Chinese"),
        pytest.param(
            "What does oil cost?",
            {"outcome": "empty", "nearest": ["Prices", "Pumps"]},
            "found in it. The documents that come closest: Prices, Pumps.",
            id="nearest, English",
        ),
        pytest.param(
            "油价多少",
            {"outcome": "empty", "nearest": ["价目表"]},
            "没有找到与此相关的内容。最接近的文档：价目表。",
            id="nearest, Chinese",
        ),
        pytest.param(
            "What does oil cost?",
            {"outcome": "unavailable"},
            "could not be reached",
            id="unavailable, English",
        ),
        pytest.param(
            "油价多少", {"outcome": "unavailable"}, "无法连接", id="unavailable, Chinese"
        ),
        pytest.param(
            "What does oil cost?",
            {"outcome": "forbidden"},
            "not allowed",
            id="forbidden, English",
        ),
        pytest.param("油价多少", {"outcome": "forbidden"}, "没有权限", id="forbidden, Chinese"),
        pytest.param(
            "Which colour has the cup of the dentist?",
            {"passages": PASSAGES, "outcome": "found"},
            "nothing about this was found in it. The documents that come closest: a.md, b.md.",
            id="nothing that answers",
        ),
        pytest.param(
            "油漆什么颜色",
            {"passages": PASSAGES, "outcome": "found"},
            "没有找到与此相关的内容。最接近的文档：a.md、b.md。",
            id="nothing that answers, Chinese",
        ),
        pytest.param("Hello", {}, "You can ask me about: ", id="chat, English"),
        pytest.param("你好", {}, "可以问我这些方面的问题：", id="chat, Chinese"),
        pytest.param(
            "What is the capital of France?", {}, "nothing about this was", id="asked in vain"
        ),
        pytest.param(
            "区块链是什么？", {}, "没有找到与此相关的内容", id="asked in vain, Chinese"
        ),
    ],
)
async def test_answers(
    model: ExtractiveChatModel, question: str, extra: dict[str, Any], expected: str
) -> None:
    text, _ = await answered(model, question, **extra)

    assert expected in text


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("Hello", id="chat"),
        pytest.param("What is the capital of France?", id="asked in vain"),
    ],
)
async def test_only_assistants_that_may_be_asked_are_named_and_searched(question: str) -> None:
    knowledge_base = ScriptedKnowledgeBase()
    text, _ = await answered(
        ExtractiveChatModel(knowledge_base=knowledge_base), question, assistants=["Farm"]
    )

    assert "Farm" in text
    assert "Zoo" not in text
    assert all(names == ["Farm"] for _, names in knowledge_base.asked)


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("Hello, who are you?", id="who"),
        pytest.param("Good morning, how are you today?", id="how"),
        pytest.param("Hey, are you a robot or a person?", id="what"),
        pytest.param("谢谢你，你叫什么名字？", id="name, Chinese"),
    ],
)
async def test_a_question_about_the_chatbot_is_not_said_to_be_searched_for(
    model: ExtractiveChatModel, question: str
) -> None:
    text, _ = await answered(model, question)

    assert text.startswith(("Without a language model", "没有语言模型"))


async def test_documents_that_hardly_match_are_the_nearest() -> None:
    model = ExtractiveChatModel(knowledge_base=ScriptedKnowledgeBase())
    text, _ = await answered(model, "What is the capital of France?", assistants=["Zoo"])

    assert "nothing about this was found in it. " in text
    assert "The documents that come closest: elephants.pdf." in text


@pytest.mark.parametrize(
    ("question", "extra"),
    [
        pytest.param("What does oil cost?", {"passages": PASSAGES}, id="found"),
        pytest.param("油价多少", {"outcome": "empty"}, id="empty"),
        pytest.param("你好", {}, id="chat"),
    ],
)
async def test_every_answer_says_how_to_set_a_model(
    model: ExtractiveChatModel, question: str, extra: dict[str, Any]
) -> None:
    text, _ = await answered(model, question, **extra)
    last = text.split("\n\n")[-1]

    for name in ("LLM_MODEL", "DASHSCOPE_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        assert name in last
    assert ".env.local" in last


async def test_an_answer_streams_in_pieces_and_says_what_it_is(
    model: ExtractiveChatModel,
) -> None:
    text, chunks = await answered(model, "What does oil cost?", passages=PASSAGES)
    again, _ = await answered(model, "What does oil cost?", passages=PASSAGES)

    assert text == again
    assert len([chunk for chunk in chunks if chunk.text]) >= 3
    (last,) = [chunk for chunk in chunks if chunk.response_metadata.get("finish_reason")]
    assert last.response_metadata["finish_reason"] == "stop"
    assert last.response_metadata["model_name"] == "extractive"
    assert chunks[0].response_metadata == {"asked_model": "extractive"}
    assert not any(chunk.usage_metadata for chunk in chunks)  # no tokens are used


async def test_it_can_be_called_without_streaming(model: ExtractiveChatModel) -> None:
    bound = model.bind_tools(tools(follow_up=False))

    message = await asyncio.to_thread(bound.invoke, conversation("Who wrote Walden?"))
    inside = bound.invoke(conversation("Who wrote Walden?"))

    assert message.tool_calls[0]["args"] == {"assistants": [WALDEN]}
    assert inside.tool_calls[0]["name"] == "knowledge_base"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("瓦尔登湖的风景怎么样？" * 4500, id="Chinese"),
        pytest.param("How deep is Walden Pond? " * 2000, id="English"),
        pytest.param("{{x}}" * 10_000, id="template syntax"),
        pytest.param("\x00\x1b" * 25_000, id="control characters"),
    ],
)
async def test_fifty_thousand_characters_take_no_time(
    model: ExtractiveChatModel, text: str
) -> None:
    await routed(model, "Who wrote Walden?")
    stopwatch = Stopwatch()

    await routed(model, text, text)
    passages = [{"number": 1, "text": text, "document": "a.md"}]
    await answered(model, text, passages=passages)

    assert stopwatch.seconds() < 4


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
@given(before=st.text(max_size=60), question=st.text(max_size=60))
async def test_any_conversation_is_routed(
    model: ExtractiveChatModel, before: str, question: str
) -> None:
    name, _ = await routed(model, before, question)

    assert name in {"knowledge_base", "general_chat"}
