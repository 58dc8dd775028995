import asyncio
import re
import sys
from datetime import datetime
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, tool

from chatbot.models.tool_calls import ToolCall
from chatbot.tools.clock import current_time_tool
from chatbot.tools.toolbox import RESULT_CHARACTERS, Toolbox


@tool
async def add(first: int, second: int) -> int:
    """Add two numbers."""
    return first + second


@tool
async def fail() -> str:
    """Fail."""
    message = "no luck"
    raise RuntimeError(message)


@tool
async def sleep() -> str:
    """Sleep for ever."""
    await asyncio.Event().wait()
    return ""


@tool
async def tell() -> list[dict[str, str]]:
    """Tell a lot."""
    return [{"type": "text", "text": "很长" * RESULT_CHARACTERS}]


@tool
def blocking(word: str) -> dict[str, str]:
    """Say a word, in code that does not await."""
    return {"said": word}


@tool
async def show() -> list[dict[str, str]]:
    """Show a picture and say what it is."""
    return [{"type": "text", "text": "A pond."}, {"type": "image", "data": "iVBORw0KGgo="}]


@tool
async def break_off() -> str:
    """Break off by itself."""
    raise asyncio.CancelledError


@tool
async def leave() -> str:
    """End the process."""
    sys.exit(3)


@tool
def leave_at_once() -> str:
    """End the process, in code that does not await."""
    sys.exit("enough")


class Leaving(BaseTool):
    """A tool with a class of its own, which is given its config."""

    name: str = "leave_by_class"
    description: str = "End the process."

    async def _arun(self, config: RunnableConfig) -> str:
        assert config["configurable"]
        await asyncio.sleep(0)
        raise SystemExit

    def _run(self) -> str:
        raise NotImplementedError


class OutOfTheWayError(BaseException):
    """An error that wants to be caught by nobody."""


@tool
async def get_out() -> str:
    """Raise what `except Exception` does not catch."""
    raise OutOfTheWayError


@tool
async def interrupt() -> str:
    """Do what Ctrl-C does."""
    raise KeyboardInterrupt


HERE = datetime.now().astimezone()
LEAVING = [leave, leave_at_once, Leaving(), get_out]
BOX = Toolbox(tools=[add, fail, tell, blocking, show, break_off, *LEAVING], seconds=30)
HURRIED = Toolbox(tools=[sleep], seconds=0.1)


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        pytest.param("add", {"first": 1, "second": 2}, "3", id="a result"),
        pytest.param("blocking", {"word": "词"}, '{"said": "词"}', id="JSON, readable"),
        pytest.param("show", {}, "A pond.\n[image]", id="blocks"),
    ],
)
async def test_a_call_is_run(name: str, arguments: dict[str, Any], result: str) -> None:
    done = await BOX.run(ToolCall(name=name, arguments=arguments))
    assert (done.text, done.failed) == (result, False)
    assert done.as_json()["arguments"] == arguments


@pytest.mark.parametrize(
    ("call", "told"),
    [
        pytest.param(
            ToolCall(name="divide"), "no tool named 'divide'.*add, fail", id="unknown"
        ),
        pytest.param(ToolCall(name="add", arguments={"first": 1}), "second", id="missing"),
        pytest.param(
            ToolCall(name="add", arguments={"first": "one", "second": 2}),
            r"first: \"one\" is not of type \"integer\"",
            id="wrong type",
        ),
        pytest.param(ToolCall(name="add", problem="not JSON"), "not JSON", id="unreadable"),
        pytest.param(ToolCall(name="fail"), "no luck", id="the tool fails"),
        pytest.param(ToolCall(name="break_off"), "broke off", id="the tool breaks off"),
        pytest.param(ToolCall(name="leave"), "exit code 3", id="the tool ends the process"),
        pytest.param(ToolCall(name="leave_at_once"), "code enough", id="so does its thread"),
        pytest.param(ToolCall(name="leave_by_class"), "end the process", id="so does a class"),
        pytest.param(ToolCall(name="get_out"), "OutOfTheWayError", id="no Exception"),
    ],
)
async def test_what_goes_wrong_is_told_to_the_model(call: ToolCall, told: str) -> None:
    done = await BOX.run(call)
    assert done.failed
    assert re.search(told, done.text)


async def test_a_tool_that_hangs_is_given_up() -> None:
    done = await HURRIED.run(ToolCall(name="sleep"))
    assert done.failed
    assert "within 0.1 seconds" in done.text


async def test_a_turn_that_is_stopped_stops_its_tool() -> None:
    box = Toolbox(tools=[sleep])
    running = asyncio.create_task(box.run(ToolCall(name="sleep")))
    await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def test_ctrl_c_ends_a_tool_and_the_process() -> None:
    box = Toolbox(tools=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(box.run(ToolCall(name="interrupt")))


async def test_a_long_result_is_cut() -> None:
    done = await BOX.run(ToolCall(name="tell"))
    assert done.text.startswith("很长很长")
    assert len(done.text) < RESULT_CHARACTERS + 30


def test_a_tool_that_is_there_goes_first() -> None:
    @tool("add")
    def other(first: int) -> int:
        """Return the same number."""
        return first

    assert BOX.adding(other).tools == BOX.tools


def test_of_two_new_tools_of_a_name_one_is_taken() -> None:
    assert len(Toolbox().adding(add, add).tools) == 1


@pytest.mark.parametrize(
    ("zone", "asked", "told"),
    [
        pytest.param("", {}, f"UTC{HERE:%z}, ", id="this machine's zone by default"),
        pytest.param("Asia/Shanghai", {}, "UTC+0800, Asia/Shanghai", id="the user's zone"),
        pytest.param("Asia/Shanghai", {"timezone": "Asia/Tokyo"}, "UTC+0900, Asia/Tokyo",
                     id="a zone asked for"),
        pytest.param("Nowhere/Else", {}, f"UTC{HERE:%z}, ", id="the user has no such zone"),
        pytest.param("", {"timezone": "Nowhere"}, "no time zone 'Nowhere'", id="no such zone"),
        pytest.param("", {"timezone": "../../etc/passwd"}, "no time zone", id="a path"),
    ],
)  # fmt: skip
async def test_the_clock(zone: str, asked: dict[str, str], told: str) -> None:
    box = Toolbox(tools=[current_time_tool()])
    assert list(box.schemas["current_time"]["properties"]) == ["timezone"]
    done = await box.run(ToolCall(name="current_time", arguments=asked), timezone=zone)
    assert told in done.text
    assert done.failed is ("no time zone" in told)


@tool
async def fetch() -> str:
    """Fail inside a group, as libraries with several tasks do."""
    message = "401 for 'https://ann:hidden@host/mcp?key=hidden' today"
    raise ExceptionGroup("unhandled", [ExceptionGroup("again", [OSError(message)])])


async def test_a_failure_is_told_without_what_signs_in(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done = await Toolbox(tools=[fetch]).run(ToolCall(name="fetch"))
    assert done.text == "The tool failed: 401 for 'https://host/mcp' today"
    assert "401 for" in caplog.text
    assert "hidden" not in caplog.text
