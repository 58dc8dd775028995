"""What a turn keeps of the model's calls: who was asked, what failed, the tokens of each."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from chatbot.domain import ANONYMOUS, Session, Turn
from chatbot.settings import Settings
from graphs import Chatbot, open_chatbot
from graphs.reviews import Explanation
from serving.cli.views import open_console
from serving.cli.why import explanation
from tests.servers.model import (
    Brain,
    ChatRequest,
    ModelServer,
    Script,
    answer,
    call,
    frames,
    html,
    refuse,
)
from tests.servers.traces import trace_sink
from tests.trajectories import Trajectory, tracing

WORDS = "one two three four five six"
NO_TOKENS = {"input_tokens": None, "output_tokens": None, "estimated": False}


@asynccontextmanager
async def chatbot(server: ModelServer, folder: Path, **more: Any) -> AsyncIterator[Chatbot]:
    usual: dict[str, Any] = {
        "chatbot_data_dir": folder,
        "llm_model": "m",
        "openai_base_url": server.base_url,
        "openai_api_key": SecretStr("one"),
        "head_start": False,
        "prefetch": 0,
    }
    async with open_chatbot(Settings(**{**usual, **more})) as bot:
        yield bot


async def turn_of(bot: Chatbot, question: str = "Hello", *, stop: bool = False) -> Turn:
    """Return the turn as it is kept; a stopped one is left at its last word."""
    said = ""
    async with aclosing(bot.stream(question, session_id="s")) as events:
        async for event in events:
            said += event["data"] if event["type"] == "content" else ""
            if stop and said.strip() == WORDS:
                break
    return (await bot.turns("s"))[-1]


@pytest.mark.parametrize("head_start", [True, False])
@pytest.mark.parametrize(
    ("ending", "stop", "status"),
    [
        pytest.param("stall", True, "stopped", id="stopped"),
        pytest.param("reset", False, "failed", id="cut off"),
        pytest.param("close", False, "failed", id="closed"),
    ],
)
async def test_a_turn_that_ends_early_tells_who_wrote_and_about_how_much(
    tmp_path: Path, ending: Any, stop: bool, status: str, head_start: bool
) -> None:
    script = answer(f"{WORDS} ", finish=None, usage=None, ending=ending)
    with trace_sink() as sink, ModelServer(Brain(answer=script)) as server, tracing(sink.url):
        async with chatbot(server, tmp_path, head_start=head_start) as bot:
            turn = await turn_of(bot, stop=stop)
        trace = Trajectory(sink.wait_for(turn.id))
    record = turn.record
    assert (turn.status, turn.answer.strip()) == (status, WORDS)
    assert (record["model"], record["endpoint"]) == ("m", "m")
    assert record["usage"]["estimated"]
    assert record["usage"]["input_tokens"] > 20
    assert 5 < record["usage"]["output_tokens"] < 20
    broken = [] if stop else [{"endpoint": "m", "kind": "interrupted"}]
    assert record["attempts"] == broken
    trace.has(status=status, model="m", endpoint="m", usage=record["usage"])


@pytest.mark.parametrize(
    ("script", "kinds"),
    [
        pytest.param(refuse(503), ["server"] * 3, id="with retries"),
        pytest.param(html(), ["protocol"], id="no answer"),
        pytest.param(refuse(400), ["bad_request"], id="refused"),
    ],
)
async def test_a_turn_without_a_word_tells_who_was_asked_and_how_often(
    tmp_path: Path, script: Script, kinds: list[str]
) -> None:
    with ModelServer(Brain(answer=script)) as server:
        async with chatbot(server, tmp_path) as bot:
            turn = await turn_of(bot)
    record = turn.record
    assert (turn.status, record["model"], record["endpoint"]) == ("failed", "m", "m")
    assert record["attempts"] == [{"endpoint": "m", "kind": kind} for kind in kinds]
    assert {name: record["usage"][name] for name in NO_TOKENS} == NO_TOKENS


async def test_an_endpoint_that_fails_while_routing_is_among_the_attempts(
    tmp_path: Path,
) -> None:
    def reply(request: ChatRequest) -> Script:
        return refuse(429) if request.key == "one" else Brain()(request)

    with ModelServer(reply) as server:
        keys = SecretStr("one,two")
        async with chatbot(server, tmp_path, openai_api_key=keys) as bot:
            turn = await turn_of(bot)
    failed = {"endpoint": "m (key 1)", "kind": "rate_limit", "step": "router"}
    assert (turn.status, turn.record["endpoint"]) == ("complete", "m (key 2)")
    assert turn.record["attempts"] == [failed]
    assert "m (key 1): rate_limit (router)" in shown(turn)


async def test_the_calls_beside_the_answer_have_their_own_tokens(tmp_path: Path) -> None:
    brain = Brain(
        route=call("knowledge_base", '{"assistants": []}', usage=(300, 20)),
        answer=answer("Paris.", usage=(100, 7)),
    )
    with ModelServer(brain) as server:
        async with chatbot(server, tmp_path, route_early=False) as bot:
            await turn_of(bot)
            events = [e async for e in bot.stream("And there?", session_id="s")]
            turn = (await bot.turns("s"))[-1]
    usage = turn.record["usage"]
    router, rewriting = usage["other"]
    assert (usage["input_tokens"], usage["output_tokens"], usage["estimated"]) == (
        100,
        7,
        False,
    )
    assert router == {
        "step": "router",
        "model": "scripted",
        "endpoint": "m",
        "input_tokens": 300,
        "output_tokens": 20,
        "estimated": False,
    }
    assert (rewriting["step"], rewriting["endpoint"]) == ("rewrite_question", "m")
    [told] = [event["data"] for event in events if event["type"] == "usage"]
    assert (told["input_tokens"], told["other"]) == (100, usage["other"])
    lines = shown(turn)
    assert "100 read, 7 written" in lines
    assert "300 read, 20 written, router" in lines


async def test_a_router_that_is_read_early_has_estimated_tokens(tmp_path: Path) -> None:
    with ModelServer(Brain(route=call("general_chat", usage=(300, 20)))) as server:
        async with chatbot(server, tmp_path) as bot:
            turn = await turn_of(bot)
    [router] = turn.record["usage"]["other"]
    assert (router["step"], router["estimated"]) == ("router", True)
    assert router["input_tokens"] > 100
    assert 0 < router["output_tokens"] < 20


async def test_an_answer_that_was_begun_for_nothing_is_counted(tmp_path: Path) -> None:
    names = '{"assistants": ["瓦尔登湖 Walden"]}'
    brain = Brain(route=call("knowledge_base", names, delay=0.5), answer=WORDS)
    with ModelServer(brain) as server:
        async with chatbot(server, tmp_path, head_start=True, prefetch=3) as bot:
            turn = await turn_of(bot, "How many days of annual leave do I get?")
    guess, router = sorted(turn.record["usage"]["other"], key=lambda each: str(each["step"]))
    assert (turn.status, turn.record["head_start"]) == ("complete", "unused")
    assert (guess["step"], guess["endpoint"], router["step"]) == ("head_start", "m", "router")
    assert guess["output_tokens"] > 0


async def test_a_router_that_fails_in_the_middle_is_counted_as_well(tmp_path: Path) -> None:
    cut = frames([{"choices": [{"index": 0, "delta": {"content": "Hm, "}}]}], ending="reset")
    with ModelServer(Brain(route=cut)) as server:
        async with chatbot(server, tmp_path) as bot:
            turn = await turn_of(bot)
    [router] = turn.record["usage"]["other"]
    assert (router["model"], router["estimated"]) == ("m", True)
    assert turn.record["attempts"] == [
        {"endpoint": "m", "kind": "interrupted", "step": "router"}
    ]


async def test_without_a_model_no_tokens_are_used(tmp_path: Path) -> None:
    async with open_chatbot(Settings(chatbot_data_dir=tmp_path)) as bot:
        turn = await turn_of(bot, "Who wrote Walden?")
    assert (turn.record["model"], turn.record["usage"]) == ("extractive", NO_TOKENS)
    assert "tokens" not in shown(turn)


def shown(turn: Turn) -> str:
    console = open_console()
    with console.capture() as captured:
        console.print(
            explanation(
                Explanation(session=Session(session_id="s", user_id=ANONYMOUS), turn=turn)
            )
        )
    return captured.get()
