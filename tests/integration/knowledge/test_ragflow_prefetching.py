"""What was searched while the router thought is not searched again, and found the same."""

import json
from dataclasses import replace

import pytest

from chatbot.history.local import LocalChatHistory
from chatbot.limits import Limits
from chatbot.ports import Ports
from graphs import Answer, Chatbot
from tests.integration.knowledge.ragflow import dataset, opened
from tests.ports import Call, Said, ScriptedChatModel
from tests.servers.ragflow import RagflowServer
from tests.servers.ragflow_knowledge import Chat

EARLY = Limits(turn_seconds=60, router_seconds=30, knowledge_seconds=30, prefetch=3)
LATE = replace(EARLY, prefetch=0)
QUESTION = "How is the pump cleaned, and who sells it?"


def chats() -> list[Chat]:
    """Return assistants whose scores can be compared, but for the last."""
    cleaned = dataset("cleaning", "The pump is cleaned with water.", "It is cleaned daily.")
    sold = dataset("selling", "The pump is sold by Ann.", "The pump is cleaned with water.")
    other = dataset("others", "Who sells the pump: nobody.", model="another-model@X")
    return [
        Chat(name="Cleaning", datasets=[cleaned]),
        Chat(name="Selling", datasets=[sold]),
        Chat(name="Others", datasets=[other]),
    ]


async def asked(server: RagflowServer, limits: Limits, names: list[str]) -> Answer:
    call = Call("knowledge_base", json.dumps({"assistants": names}))
    model = ScriptedChatModel(script=[Said(call=call), Said(["So it is [1][2][3]."])])
    async with opened(server) as knowledge, LocalChatHistory(":memory:") as history:
        ports = Ports(history=history, knowledge=knowledge, model=model, limits=limits)
        bot = Chatbot(ports)
        answer = await bot.ask(QUESTION, session_id="s")
        [turn] = await bot.turns("s")
        assert turn.record.get("prefetch") == ("used" if limits.prefetch else None)
        return answer


def retrievals(server: RagflowServer) -> int:
    return sum(request.path.endswith("/retrieval") for request in server.requests)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(["Cleaning"], id="one"),
        pytest.param(["Cleaning", "Selling"], id="two"),
        pytest.param(["Others", "Cleaning"], id="scores that cannot be compared"),
        pytest.param([], id="all"),
    ],
)
async def test_nothing_is_searched_twice(names: list[str]) -> None:
    with RagflowServer(chats()) as server:
        early = await asked(server, EARLY, names)
        assert retrievals(server) == 3
        late = await asked(server, LATE, names)
    assert early.citations == late.citations
    assert early.citations
    assert early.metadata["assistants"] == late.metadata["assistants"]


async def test_one_that_fails_is_told_as_in_one_search() -> None:
    broken = Chat(name="Broken", datasets=[])
    with RagflowServer([*chats()[:2], broken]) as server:
        early = await asked(server, EARLY, [])
        assert retrievals(server) == 2
        late = await asked(server, LATE, [])
    assert early.citations == late.citations
    assert early.metadata["degraded"] == late.metadata["degraded"] != []
