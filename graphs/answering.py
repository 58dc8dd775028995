"""Has the model answer, runs the tools that it calls, and keeps each prompt within bounds."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from chatbot.errors import ModelError
from chatbot.models.context_window import ContextWindow
from chatbot.models.structured import Form, StructuredOutput, Written
from chatbot.models.tool_calls import ToolCall
from chatbot.ports import Ports
from chatbot.tools.toolbox import Toolbox
from graphs.fitting import Exchange, FittedTask, Task, fit
from graphs.notices import nothing_said
from graphs.prompt import Prompt
from graphs.speaking import Said, Speaker
from graphs.turn import LiveTurn

ROUNDS = 5
CALLS = 16  # in one reply
_REFUSED = frozenset({"bad_request", "unsupported"})
_ABOUT_TOOLS = re.compile(r"\btools?\b|tool[_-]", re.IGNORECASE)
_ABOUT_FORM = re.compile(r"schema|response_format|json", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What an answer is to be made from, and how.

    `schema` asks for JSON that fits it; `options` go to the endpoint as they are. `timezone` is
    the user's, for tools.
    """

    task: Task
    toolbox: Toolbox
    schema: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    timezone: str = ""


async def first_prompt(ports: Ports, request: Request) -> Prompt | None:
    """Return what an answer without a schema asks first, or nothing if it does not fit."""
    window = _window(ports, request)
    task, toolbox = request.task, request.toolbox
    try:
        fitted = await fit(task, window, _described(toolbox, request.options))
    except ModelError:
        return None
    return _prompt(fitted.task, toolbox, request.options)


async def stream_answer(turn: LiveTurn, ports: Ports, request: Request) -> AIMessage:
    """Emit the answer as it comes, with checked citations, and return it as a message.

    With a schema nothing is emitted before the whole fits it.

    Raises:
        ModelError: The model failed, or said nothing. What it had said is in the turn.
        InputError: The schema cannot be used.
    """
    speaker = Speaker(turn, ports, silent=request.schema is not None)
    answering = _Answering(turn, ports, request, speaker)
    try:
        if request.schema is None:
            await answering.reply(request.task, request.options)
        else:
            speaker.emit(await answering.structured(request.schema))
    finally:
        speaker.finish()
    if not turn.answer.strip():
        raise nothing_said(turn.record["finish_reason"])
    return turn.answer_message()


class _Answering:
    """The replies of the model to one question, and the tools that it calls in between."""

    def __init__(
        self, turn: LiveTurn, ports: Ports, request: Request, speaker: Speaker
    ) -> None:
        self._turn = turn
        self._ports = ports
        self._request = request
        self._speaker = speaker
        self._toolbox = request.toolbox
        self._exchanges: list[Exchange] = []
        self._window = _window(ports, request)
        self._is_smaller = False
        self._unseen: dict[str, Any] = {}

    async def reply(self, task: Task, options: Mapping[str, Any]) -> Said:
        """Return what the model says once it calls no more tools, after `ROUNDS` at most."""
        while self._toolbox.tools and len(self._exchanges) < ROUNDS:
            before = self._turn.answer
            try:
                said = await self._ask(task, options)
            except ModelError as error:
                if self._turn.answer != before or not _refuses_tools(error, options):
                    raise
                self._turn.degrade("tools", f"No tools were offered: {error.message}")
                self._toolbox = Toolbox()
                break
            if not said.calls:
                return said
            self._speaker.pause()
            self._exchanges.append(await self._run(said))
        return await self._last_reply(task, options)

    async def structured(self, schema: Mapping[str, Any]) -> str:
        """Return JSON that fits the schema. Tools may be called before, as without one."""
        if self._ports.window is None:
            message = "Structured answers need a language model. Set LLM_MODEL and its key."
            raise ModelError("unsupported", message)
        task = self._request.task

        async def reply(form: Form, corrections: Sequence[BaseMessage]) -> Written:
            pipeline = replace(task.pipeline, wish=form.wish)
            asked = replace(task, pipeline=pipeline, corrections=corrections)
            said = await self.reply(asked, {**self._request.options, **form.options})
            return Written(text=said.text, finish_reason=said.finish_reason)

        found = await StructuredOutput(schema, self._ports.prompts).ask(reply)
        self._turn.note(structured=found.value)
        return json.dumps(found.value, ensure_ascii=False)

    async def _last_reply(self, task: Task, options: Mapping[str, Any]) -> Said:
        """Return a reply that calls nothing.

        Some endpoints refuse results of tools where they are offered none, so the tools stay in
        the request, with the word that none is to be called. Others do not know that word, or
        call one all the same: those are asked without tools.
        """
        if self._exchanges and self._toolbox.tools:
            try:
                said = await self._ask(task, options, choice="none")
            except ModelError as error:
                if error.kind not in _REFUSED:
                    raise
            else:
                if said.text.strip() or not said.calls:
                    return said
            self._toolbox = Toolbox()
        return await self._ask(task, options)

    async def _ask(
        self, task: Task, options: Mapping[str, Any], *, choice: str | None = None
    ) -> Said:
        """Return one reply, to a prompt that fits.

        Where the endpoint says that it is too long after all, it is made shorter, once. Where
        images of earlier questions stand in the way, they are left out.
        """
        pipeline = replace(task.pipeline, **self._unseen)
        with_tools = pipeline.with_tools and bool(self._toolbox.tools)
        task = replace(
            task,
            pipeline=replace(pipeline, with_tools=with_tools),
            exchanges=self._exchanges,
        )
        described = _described(self._toolbox, options)
        while True:
            fitted = await fit(task, self._window, described)
            self._note_cut(fitted)
            before = self._turn.answer
            try:
                return await self._speaker.listen(
                    _prompt(fitted.task, self._toolbox, options, choice),
                    self._request.toolbox.schemas,
                    fitted.task.passages,
                )
            except ModelError as error:
                if self._turn.answer != before:
                    raise
                if error.kind != "context_too_long":
                    task = self._without_earlier_images(task, error)
                    continue
                if self._window is None or self._is_smaller:
                    raise
                await self._window.counter.load()
                sent = await fit(task, self._window, described)  # without estimates
                bare = await fit(task.bare(), self._window, described)
                self._window = self._window.smaller(sent.tokens, least=bare.tokens or 0)
                self._is_smaller = True

    def _without_earlier_images(self, task: Task, error: ModelError) -> Task:
        """Return the task without them: another endpoint, which sees none, may answer.

        Raises:
            ModelError: It is `error`, and they are not what it is about.
        """
        pipeline = task.pipeline
        if not pipeline.earlier_images or pipeline.images or error.kind == "content_filter":
            raise error
        self._turn.degrade("images", f"Earlier images were not shown again. {error.message}")
        self._unseen = {"earlier_images": {}}
        return replace(task, pipeline=replace(pipeline, **self._unseen))

    async def _run(self, said: Said) -> Exchange:
        """Run the calls of a reply, one after the other, `CALLS` at most."""
        used = []
        known = {id_ for exchange in self._exchanges for id_, _ in exchange.used}
        for call in said.calls[:CALLS]:
            self._turn.stage("tool", call.name)
            with self._turn.timed(f"tool {call.name}"):
                result = await self._toolbox.run(call, timezone=self._request.timezone)
            tools = self._turn.record.setdefault("tools", [])
            tools.append(result.as_json())
            id_ = _new_id(call, known, len(tools))
            known.add(id_)
            used.append((id_, tools[-1]))
        return Exchange(said=said.text, used=used)

    def _note_cut(self, fitted: FittedTask) -> None:
        """Note what was left out; of turns what had no room even before tools gave anything."""
        cut = self._turn.record.get("cut", {})
        turns = cut.get("turns", 0) if fitted.task.exchanges else fitted.turns_cut
        found = {"turns": turns, "passages": fitted.passages_cut}
        if fitted.results_cut:
            found["results"] = fitted.results_cut
        if any(found.values()):
            self._turn.note(cut=found)


def _window(ports: Ports, request: Request) -> ContextWindow | None:
    return ports.window and ports.window.reserving(request.options.get("max_tokens"))


def _described(toolbox: Toolbox, options: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what takes room in the prompt beside its messages."""
    form = options.get("response_format")
    return [*toolbox.definitions, *([form] if form else [])]


def _prompt(
    task: Task, toolbox: Toolbox, options: Mapping[str, Any], choice: str | None = None
) -> Prompt:
    definitions = toolbox.definitions
    return Prompt(
        messages=task.messages(), tools=definitions, choice=choice, options=dict(options)
    )


def _new_id(call: ToolCall, known: set[str], number: int) -> str:
    """Return the id of a call, another one where it has none, or that of another call."""
    return call.id if call.id and call.id not in known else f"call_{number}"


def _refuses_tools(error: ModelError, options: Mapping[str, Any]) -> bool:
    """Tell whether it is the tools that an endpoint refuses, and not the form of the answer."""
    if error.kind not in _REFUSED:
        return False
    if _ABOUT_TOOLS.search(error.message) and not _ABOUT_FORM.search(error.message):
        return True
    return error.kind == "unsupported" and "response_format" not in options
