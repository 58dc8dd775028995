"""However a turn ended, the model then gets questions and answers in turns, over HTTP."""

from contextlib import aclosing
from pathlib import Path

import pytest

from chatbot.settings import Settings
from graphs import Chatbot, open_chatbot
from tests.servers.model import ChatRequest, ModelServer, Script, answer, call, hang, refuse

FIRST, SECOND = "How long is the warranty?", "And for batteries?"


def model(first: Script, routed: Script) -> ModelServer:
    def reply(request: ChatRequest) -> Script:
        is_first = FIRST in request.question and SECOND not in request.question
        if request.tools:
            return routed if is_first else call("knowledge_base")
        return first if is_first else answer("Fine.")

    return ModelServer(reply)


async def ask(bot: Chatbot, leave_at: str) -> None:
    """Ask, and leave at the first event of this type, or at the stage of this name."""
    async with aclosing(bot.stream(FIRST, session_id="s")) as events:
        async for event in events:
            name = event["data"]["name"] if event["type"] == "stage" else event["type"]
            if name == leave_at:
                return


SILENCE = hang()
HALF = ["Half ", "of it "]
LOOK_UP = call("knowledge_base")


@pytest.mark.parametrize(
    ("routed", "first", "leave_at", "status"),
    [
        pytest.param(SILENCE, answer(), "routing", "stopped", id="left while routing"),
        pytest.param(LOOK_UP, answer(HALF, ending="stall"), "content", "stopped", id="left"),
        pytest.param(
            LOOK_UP, answer(HALF, finish=None, ending="reset"), "", "failed", id="cut off"
        ),
        pytest.param(LOOK_UP, refuse(401), "", "failed", id="refused"),
        pytest.param(LOOK_UP, answer(""), "", "failed", id="nothing said"),
        pytest.param(LOOK_UP, answer(" \n"), "", "failed", id="white space alone"),
        pytest.param(LOOK_UP, SILENCE, "", "failed", id="too slow"),
        pytest.param(LOOK_UP, answer("Two years."), "", "complete", id="answered"),
    ],
)
async def test_the_next_prompts_have_questions_and_answers_in_turns(
    tmp_path: Path, routed: Script, first: Script, leave_at: str, status: str
) -> None:
    with model(first, routed) as server:
        settings = Settings(
            chatbot_data_dir=tmp_path, openai_base_url=server.base_url, llm_model="scripted"
        )
        hasty = settings.model_copy(update={"turn_timeout_seconds": 2.0})
        async with open_chatbot(hasty if first is SILENCE else settings) as bot:
            await ask(bot, leave_at)
            assert await bot.running("s") is None
            assert [turn.status for turn in await bot.turns("s")] == [status]
        before = len(server.seen)
        async with open_chatbot(settings) as bot:
            assert (await bot.ask(SECOND, session_id="s")).text == "Fine."
        prompts = server.seen[before:]
        assert len(prompts) >= 2  # it was routed and answered
        for prompt in prompts:
            roles = [message["role"] for message in prompt.messages]
            assert roles == ["system", "user", "assistant", "user"]
            assert all(str(message["content"]).strip() for message in prompt.messages)
