import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

import pytest

from chatbot.errors import KnowledgeBaseError, ModelError
from chatbot.ports import Ports
from graphs.evaluation.cases import Case, Earlier
from graphs.evaluation.running import Bench
from tests.ports import (
    HANDBOOK,
    WALDEN,
    Call,
    InMemoryKnowledgeBase,
    Said,
    ScriptedChatModel,
    passage,
)


class Untouched:
    """The user's history: an evaluation that reads or writes it fails."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(name)


BEFORE = (Earlier(question="Who wrote Walden?", answer="Thoreau [1]."),)
LEAVE = passage("leave is 10 days")
POND = passage("the pond is deep", WALDEN)


def ports(script: Sequence[Said], knowledge: InMemoryKnowledgeBase | None = None) -> Ports:
    return Ports(
        history=cast("Any", Untouched()),
        knowledge=knowledge or known(),
        model=ScriptedChatModel(script=list(script)),
    )


def known() -> InMemoryKnowledgeBase:
    return InMemoryKnowledgeBase({HANDBOOK.name: [LEAVE], WALDEN.name: [POND]})


def look_up(question: str = "") -> Said:
    arguments: dict[str, Any] = {"assistants": [WALDEN.name]}
    if question:
        arguments["question"] = question
    return Said(call=Call("knowledge_base", json.dumps(arguments)))


CHATS = Said(call=Call("general_chat"))


@pytest.mark.parametrize(
    ("case", "script", "found", "searched"),
    [
        pytest.param(
            {"route": "general_chat"},
            [CHATS],
            {"route": "general_chat"},
            False,
            id="routing: chat",
        ),
        pytest.param(
            {"route": "general_chat"},
            [look_up()],
            {"route": "knowledge_base"},
            False,
            id="routing ends there, whatever the route",
        ),
        pytest.param(
            {"keep": ["Thoreau"], "earlier": BEFORE},
            [look_up("When did Thoreau die?")],
            {"query": "When did Thoreau die?"},
            False,
            id="rewriting",
        ),
        pytest.param(
            {"keep": ["Thoreau"], "find": ["x.md"], "earlier": BEFORE},
            [look_up("How deep is the pond of Thoreau?")],
            {"query": "How deep is the pond of Thoreau?", "passages": [POND]},
            True,
            id="rewriting, and what is found with it",
        ),
        pytest.param(
            {"find": ["x.md"]},
            [],
            {"passages": [LEAVE, POND]},
            True,
            id="retrieval asks no model",
        ),
        pytest.param(
            {"find": ["x.md"], "route": "knowledge_base"},
            [CHATS],
            {"route": "general_chat", "passages": []},
            False,
            id="nothing is found on the wrong route",
        ),
    ],
)
async def test_a_case_goes_as_far_as_it_is_measured(
    case: Mapping[str, Any], script: Sequence[Said], found: Mapping[str, Any], *, searched: bool
) -> None:
    used = ports(script)
    asked = Case(question="How long is my leave?", **case)
    outcome = await Bench(used).run(asked)

    assert outcome.error == ""
    assert {name: getattr(outcome, name) for name in found} == found
    model, knowledge = cast("ScriptedChatModel", used.model), used.knowledge
    assert model.script == []
    assert len(model.prompts) == len(script)
    assert bool(cast("InMemoryKnowledgeBase", knowledge).queries) is searched


async def test_an_answer_is_made_from_what_was_said_and_found() -> None:
    used = ports([look_up("the pond of Walden"), Said(pieces=["Deep", " [1]."])])
    case = Case(question="How deep is its pond?", answerable=True, earlier=BEFORE)
    outcome = await Bench(used).run(case)

    assert (outcome.answer, outcome.error) == ("Deep [1].", "")
    assert [each.document for each in outcome.citations] == [POND.document]
    prompt = cast("ScriptedChatModel", used.model).prompts[1]
    assert [str(message.text) for message in prompt[1:3]] == [
        "Who wrote Walden?",
        "Thoreau [1].",
    ]


async def test_documents_of_a_case_take_the_place_of_the_knowledge_base() -> None:
    used = ports([Said(pieces=["24 [1]."])])
    case = Case(
        question="How many bicycles?",
        documents={"bikes.md": "There are 24 bicycles.", "more.md": "Ring the bell."},
        answerable=True,
    )
    outcome = await Bench(used).run(case)

    assert outcome.answer == "24 [1]."
    assert [each.document for each in outcome.passages] == ["bikes.md", "more.md"]
    assert cast("InMemoryKnowledgeBase", used.knowledge).queries == []


@pytest.mark.parametrize(
    ("case", "script", "down", "told"),
    [
        pytest.param(
            {"route": "general_chat"},
            [Said(error=ModelError("connection", "nobody is there"))],
            None,
            "router",
            id="the router fails: the default route is no decision",
        ),
        pytest.param(
            {"answerable": False},
            [],
            KnowledgeBaseError("unavailable", "RAGFlow is down"),
            "RAGFlow is down",
            id="the knowledge base is down: that is no refusal",
        ),
        pytest.param(
            {"find": ["a.md"]},
            [],
            KnowledgeBaseError("unavailable", "RAGFlow is down"),
            "RAGFlow is down",
            id="the knowledge base is down for a search",
        ),
        pytest.param(
            {"answerable": True, "documents": {"a.md": "leave"}},
            [Said(error=ModelError("auth", "the key is wrong"))],
            None,
            "the key is wrong",
            id="the model fails",
        ),
    ],
)
async def test_what_fails_is_told(
    case: Mapping[str, Any],
    script: Sequence[Said],
    down: KnowledgeBaseError | None,
    told: str,
) -> None:
    used = ports(script, InMemoryKnowledgeBase(down=down))
    outcome = await Bench(used).run(Case(question="What about leave?", **case))
    assert told in outcome.error


async def test_a_search_without_one_of_the_assistants_is_no_measure() -> None:
    away = KnowledgeBaseError("unavailable", "RAGFlow is down")
    knowledge = InMemoryKnowledgeBase({WALDEN.name: [POND]}, failing={HANDBOOK.name: away})
    outcome = await Bench(ports([], knowledge)).run(Case(question="pond", find=("a.md",)))
    assert (outcome.passages, outcome.error) == ([POND], "RAGFlow is down")
