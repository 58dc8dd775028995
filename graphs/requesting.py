"""Puts together what the model is to answer, from the state and the choices of the run."""

from collections.abc import Sequence
from dataclasses import replace

from langgraph.runtime import Runtime

from chatbot.domain import Assistant, Findings
from chatbot.messages import MessagePipeline
from chatbot.ports import Ports
from chatbot.tools.clock import now_in
from chatbot.tools.toolbox import Toolbox
from graphs.answering import Request, first_prompt
from graphs.asides import whose
from graphs.fitting import Task
from graphs.head_start import HeadStart
from graphs.intake import choices_of
from graphs.keeping import running
from graphs.prefetching import Prefetch
from graphs.prompt import Prompt
from graphs.state import ChatState, Context


def pipeline_of(state: ChatState, runtime: Runtime[Context], ports: Ports) -> MessagePipeline:
    """Return what makes the prompts of this turn."""
    choices, turn = choices_of(runtime), running(state)
    return MessagePipeline(
        prompts=ports.prompts,
        question=turn.question,
        turns=state.history,
        instructions=choices.instructions,
        language=choices.language,
        with_tools=bool(_toolbox(ports).tools),
        budget=None if ports.window is None else ports.window.budget,
        summary=state.summary,
        images=turn.images,
        earlier_images=turn.earlier_images,
    )


async def request_of(state: ChatState, runtime: Runtime[Context], ports: Ports) -> Request:
    """Return what is to be answered once it is decided, and looked up where that is wanted."""
    looked_up = state.route is not None and state.route.intent == "knowledge_base"
    task = Task(
        pipeline=pipeline_of(state, runtime, ports),
        assistants=state.assistants,
        query=state.query if looked_up else None,
        passages=state.passages,
        nearest=state.nearest,
    )
    return await _request(task, state, runtime, ports)


def begin_answer(
    state: ChatState,
    runtime: Runtime[Context],
    ports: Ports,
    *,
    prefetch: Prefetch,
    available: Sequence[Assistant],
) -> HeadStart:
    """Begin the answer to a first question from what was found while the router thinks.

    The guess is that the router means the assistant that has the best passage.
    """

    async def guess() -> Prompt | None:
        found = await prefetch.likeliest()
        if found is None:
            return None
        task = _guessed(found, state, runtime, ports, available)
        return await first_prompt(ports, await _request(task, state, runtime, ports))

    return HeadStart(guess(), ports.model, counts=ports.window is not None)


def _guessed(
    found: Findings,
    state: ChatState,
    runtime: Runtime[Context],
    ports: Ports,
    available: Sequence[Assistant],
) -> Task:
    return Task(
        pipeline=pipeline_of(state, runtime, ports),
        assistants=available,
        query=running(state).question,
        passages=found.passages,
        nearest=found.nearest,
    )


async def _request(
    task: Task, state: ChatState, runtime: Runtime[Context], ports: Ports
) -> Request:
    choices = choices_of(runtime)
    now = await now_in(choices.timezone)
    today = f"{now:%A, %Y-%m-%d} ({now.tzinfo})"
    return Request(
        task=replace(task, pipeline=replace(task.pipeline, today=today)),
        toolbox=_toolbox(ports),
        schema=choices.response_schema,
        options=choices.options | whose(running(state)),
        timezone=choices.timezone,
    )


def _toolbox(ports: Ports) -> Toolbox:
    return ports.toolbox if ports.tool_servers is None else ports.tool_servers.toolbox
