"""Runs the tools that a model calls: checked, before a deadline, and never fatal."""

import asyncio
import json
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, NoReturn

import jsonschema_rs
from langchain_core.runnables.config import ensure_config, patch_config
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from chatbot.models.tool_calls import ToolCall
from chatbot.tools.clock import TIMEZONE

logger = logging.getLogger(__name__)

TOOL_SECONDS = 30.0
_SIGNS_IN = re.compile(r"(?<=://)[^\s/@'\"]*@|(?<=\S)\?[^\s'\"]+=[^\s'\"]*")
RESULT_CHARACTERS = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolResult:
    """What became of a call. `text` is for the model: the result, or what went wrong."""

    call: ToolCall
    text: str
    failed: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the call and its result as the turn's record keeps them."""
        return {
            "name": self.call.name,
            "arguments": dict(self.call.arguments),
            "result": self.text,
            "failed": self.failed,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Toolbox:
    """Tools by name. A call that cannot be run is told to the model, which may try again."""

    tools: Sequence[BaseTool] = ()
    seconds: float = TOOL_SECONDS
    definitions: Sequence[dict[str, Any]] = field(init=False)
    schemas: Mapping[str, Mapping[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        """Describe the tools as models are told of them, and what arguments each takes."""
        definitions = [convert_to_openai_tool(tool) for tool in self.tools]
        functions = [definition["function"] for definition in definitions]
        schemas = {each["name"]: each.get("parameters") or {} for each in functions}
        object.__setattr__(self, "definitions", definitions)
        object.__setattr__(self, "schemas", schemas)

    def adding(self, *tools: BaseTool) -> "Toolbox":
        """Return a toolbox that also has these tools; a tool that is there goes first."""
        named: dict[str, BaseTool] = {}
        for tool in (*self.tools, *tools):
            named.setdefault(tool.name, tool)
        return Toolbox(tools=list(named.values()), seconds=self.seconds)

    async def run(self, call: ToolCall, *, timezone: str = "") -> ToolResult:
        """Run one call. `timezone` is the user's, for tools that look into their config."""
        problem = self._problem(call)
        if problem:
            return ToolResult(call=call, text=problem, failed=True)
        tool = next(tool for tool in self.tools if tool.name == call.name)
        config = patch_config(ensure_config(), configurable={TIMEZONE: timezone})
        try:
            async with asyncio.timeout(self.seconds):
                result = await _contained(tool).ainvoke(dict(call.arguments), config)
        except TimeoutError:
            text = f"The tool did not answer within {self.seconds:g} seconds."
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            text = "The tool broke off."  # by itself, as what has a scope of its own may do
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - a tool is anybody's code, and may fail
            text = f"The tool failed: {_told(error)}"
            logger.warning("tool %s failed: %s", call.name, _told(error))
        else:
            return ToolResult(call=call, text=_text(result))
        return ToolResult(call=call, text=_text(text), failed=True)

    def _problem(self, call: ToolCall) -> str:
        """Return why the call cannot be run, in words the model can act on, or ""."""
        if call.name not in self.schemas:
            names = ", ".join(self.schemas)
            return f"There is no tool named {call.name!r}. The tools are: {names}."
        if call.problem:
            return f"The arguments could not be read: {call.problem}"
        try:
            validator = jsonschema_rs.validator_for(
                dict(self.schemas[call.name]), retriever=_refuse
            )
            errors = list(validator.iter_errors(dict(call.arguments)))
        except (jsonschema_rs.ValidationError, ValueError):
            return ""  # the schema itself is wrong: the tool has to judge
        told = [
            f"{'.'.join(map(str, error.instance_path)) or 'arguments'}: {error.message}"
            for error in errors[:5]
        ]
        return f"The arguments do not fit the tool: {'; '.join(told)}" if told else ""


def _contained(tool: BaseTool) -> BaseTool:
    """Return the tool such that what ends a process is only a failure of it.

    LangChain runs what awaits in a task of its own, and asyncio lets `SystemExit` out of any.
    """
    run = tool._arun  # noqa: SLF001 - every tool is run by this one

    @wraps(run)
    async def contained(*args: object, **given: object) -> object:
        try:
            return await run(*args, **given)
        except SystemExit as error:
            raise RuntimeError(_told(error)) from error

    alike = tool.model_copy()
    object.__setattr__(alike, "_arun", contained)
    return alike


def first_of(error: BaseException) -> BaseException:
    """Return the first error inside the groups in which libraries wrap theirs."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _told(error: BaseException) -> str:
    """Return what an error says, without what signs in to an address that it names."""
    first = first_of(error)
    if isinstance(first, SystemExit):
        return f"it tried to end the process (exit code {first.code})"
    return _SIGNS_IN.sub("", str(first)) or type(first).__name__


def _text(result: object) -> str:
    if isinstance(result, list) and all(isinstance(b, dict) and "type" in b for b in result):
        result = "\n".join(str(b.get("text") or f"[{b['type']}]") for b in result)
    if not isinstance(result, str):
        result = json.dumps(result, ensure_ascii=False, default=str)
    if len(result) <= RESULT_CHARACTERS:
        return result
    return f"{result[:RESULT_CHARACTERS]} … ({len(result) - RESULT_CHARACTERS} more)"


def _refuse(uri: str) -> NoReturn:
    """Fetch nothing for a schema, which may be anybody's."""
    message = f"a tool's schema refers to {uri[:100]}"
    raise ValueError(message)
