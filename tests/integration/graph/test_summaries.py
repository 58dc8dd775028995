"""What a prompt does not show any more is summed up behind the turn, once, and kept."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from chatbot.domain import Turn
from chatbot.errors import ModelError
from chatbot.limits import Limits
from chatbot.models.context_window import ContextWindow
from chatbot.models.tokens import TokenCounter
from graphs import Chatbot
from tests.integration.graph.conftest import Bench
from tests.ports import Call, Said

CHAT = Said(call=Call("general_chat"))
LIMITS = Limits(turn_seconds=60, router_seconds=30, summarize=True, history_turns=2)
TEA = Said(["They like tea."])


def bot_of(bench: Bench, tokens: int = 30_000, limits: Limits = LIMITS) -> Chatbot:
    counter = TokenCounter("some-model")
    window = ContextWindow(counter=counter, tokens=tokens, reserved=100)
    return bench.bot_with(window=window, limits=limits)


async def talk(bench: Bench, bot: Chatbot, *answers: str, first: int = 0) -> None:
    for number, answer in enumerate(answers, first):
        bench.script(CHAT, Said([answer]))
        await bot.ask(f"question {number}", session_id="s")


def summaries(turns: Any) -> dict[str, dict[str, str]]:
    """Return the summaries that turns hold, by the questions of the turns."""
    return {turn.question: turn.record["summary"] for turn in turns if "summary" in turn.record}


async def test_what_leaves_the_window_is_summed_up_once(bench: Bench) -> None:
    limits = Limits(turn_seconds=60, router_seconds=30, summarize=True)
    bot = bot_of(bench, 2_000, limits)
    made = 0
    for number in range(6):
        bench.script(CHAT, Said([f"answer {number} " + "word " * 450]), TEA)
        await bot.ask(f"question {number}", session_id="s")
        await bench.background.settle()
        made += bench.used_up()
        bench.model.script.clear()
    kept = summaries(await bot.turns("s"))
    assert 1 <= len(kept) == made < 5
    bench.script(CHAT, Said(["answer"]))
    assert (await bot.ask("last", session_id="s")).text == "answer"
    said = [str(message.content) for message in bench.model.prompts[-1]]
    assert "They like tea." in said[1]
    assert "question 0" not in said


async def test_what_is_older_than_the_history_shows_is_summed_up_too(bench: Bench) -> None:
    bot = bot_of(bench)
    await talk(bench, bot, "a", "b", "c")
    await bench.background.settle()
    assert summaries(await bot.turns("s")) == {}
    bench.script(CHAT, Said(["d"]), TEA)
    await bot.ask("question 3", session_id="s")
    await bench.background.settle()
    assert bench.used_up()
    turns = await bot.turns("s")
    assert summaries(turns) == {"question 3": {"text": "They like tea.", "until": turns[0].id}}
    spent = turns[-1].record["usage"]["other"]
    assert [each["step"] for each in spent] == ["router", "summarize"]
    assert all(each["estimated"] and each["output_tokens"] > 0 for each in spent)
    assert [turn.answer for turn in turns] == ["a", "b", "c", "d"]
    bench.script(CHAT, Said(["e"]), Said(["Tea, and more."]))
    await bot.ask("question 4", session_id="s")
    await bench.background.settle()
    asked = [str(message.content) for message in bench.model.prompts[-1]]
    assert "They like tea." in asked[1]
    assert asked[3:5] == ["question 1", "b"]


async def test_nobody_waits_for_a_summary(bench: Bench) -> None:
    bot = bot_of(bench)
    await talk(bench, bot, "a", "b", "c")
    slow = Said(["They like tea."], pause=asyncio.Event())
    bench.script(CHAT, Said(["d"]), slow)
    async with asyncio.timeout(20):  # a summary may take longer
        await bot.ask("question 3", session_id="s")
        await talk(bench, bot, "e", first=4)  # the session is free, too
    assert len(bench.model.prompts) == 5 * 2 + 1  # one summary at a time
    assert slow.pause is not None
    slow.pause.set()
    await bench.background.settle()
    assert list(summaries(await bot.turns("s"))) == ["question 3"]


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(Said(error=ModelError("server", "no summary")), id="the model fails"),
        pytest.param(Said([""]), id="it says nothing"),
        pytest.param(Said(["They like"], finish="length"), id="it is cut off"),
        pytest.param(Said(["word " * 5_000]), id="it says far too much"),
        pytest.param(Said(["They"], pause=asyncio.Event()), id="it takes too long"),
    ],
)
async def test_a_summary_that_fails_changes_nothing(bench: Bench, said: Said) -> None:
    limits = replace(LIMITS, router_seconds=0.5 if said.pause else 30)
    bot = bot_of(bench, limits=limits)
    await talk(bench, bot_of(bench), "a", "b", "c")
    bench.script(CHAT, Said(["d"]), said)
    await bot.ask("question 3", session_id="s")
    await bench.background.settle()
    assert summaries(await bot.turns("s")) == {}
    bench.script(CHAT, Said(["e"]), TEA)
    await bot.ask("question 4", session_id="s")
    await bench.background.settle()
    turns = await bot.turns("s")
    assert summaries(turns)["question 4"]["until"] == turns[1].id


async def test_a_session_that_was_cleared_is_not_summed_up(bench: Bench) -> None:
    bot = bot_of(bench)
    await talk(bench, bot, "a", "b", "c")
    slow = Said(["They like tea."], pause=asyncio.Event())
    bench.script(CHAT, Said(["d"]), slow)
    await bot.ask("question 3", session_id="s")
    while len(bench.model.prompts) < 9:  # noqa: ASYNC110 - the model tells nobody
        await asyncio.sleep(0.01)
    await bot.clear("s")
    assert slow.pause is not None
    slow.pause.set()
    await bench.background.settle()
    assert await bot.turns("s") == []


async def test_what_goes_on_at_the_end_has_a_moment_to_come_to_its_end(bench: Bench) -> None:
    bot = bot_of(bench)
    await talk(bench, bot, "a", "b", "c")
    bench.script(CHAT, Said(["d"]), TEA)
    await bot.ask("question 3", session_id="s")
    await bench.background.close()
    assert list(summaries(await bot.turns("s"))) == ["question 3"]
    await talk(bench, bot, "e", first=4)  # what comes later begins nothing
    assert bench.used_up()
    assert len(bench.model.prompts) == 11


async def test_what_takes_too_long_at_the_end_is_ended(bench: Bench) -> None:
    bot = bot_of(bench)
    await talk(bench, bot, "a", "b", "c")
    bench.script(CHAT, Said(["d"]), Said(["They"], pause=asyncio.Event()))
    await bot.ask("question 3", session_id="s")
    async with asyncio.timeout(20):
        await bench.background.close(seconds=0.05)
    assert summaries(await bot.turns("s")) == {}


async def test_of_long_turns_the_oldest_are_summed_up_first(bench: Bench) -> None:
    bot = bot_of(bench, 3_000, replace(LIMITS, history_turns=0))
    for number in range(3):
        bench.script(CHAT, Said(["很长" * 2_000]), Said([f"summary {number}"]))
        await bot.ask(f"question {number}", session_id="s")
        await bench.background.settle()
        bench.model.script.clear()
    turns: list[Turn] = [*await bot.turns("s")]
    assert [each["until"] for each in summaries(turns).values()] == [turns[0].id, turns[1].id]


async def test_a_turn_that_is_left_early_has_no_summary(bench: Bench) -> None:
    bot = bot_of(bench)
    await talk(bench, bot, "a", "b", "c")
    bench.script(CHAT, Said(["half"], pause=asyncio.Event()))
    async with aclosing(bot.stream("question 3", session_id="s")) as events:
        async for event in events:
            if event["type"] == "content":
                break
    await bench.background.settle()
    assert bench.used_up()
