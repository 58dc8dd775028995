"""Fits the prompt of an answer into what the model can read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.messages import BaseMessage

from chatbot.domain import Assistant, Passage
from chatbot.earlier_turns import fitting, tool_messages
from chatbot.errors import ModelError
from chatbot.messages import HISTORY_CHARACTERS, MessagePipeline, rendered
from chatbot.models.context_window import ContextWindow

LEAST_PASSAGE = 200  # characters


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """What the model said in a reply, and the tools that it called: id, call and result."""

    said: str
    used: Sequence[tuple[str, Mapping[str, Any]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """What is to be answered: from passages to a query, or, without one, in conversation.

    `nearest` names documents to look into where there are no passages. `exchanges` are what
    tools have given so far, `corrections` what was wrong with a reply.
    """

    pipeline: MessagePipeline
    assistants: Sequence[Assistant] = ()
    query: str | None = None
    passages: Sequence[Passage] = ()
    nearest: Sequence[str] = ()
    exchanges: Sequence[Exchange] = ()
    corrections: Sequence[BaseMessage] = ()

    def messages(self) -> list[BaseMessage]:
        """Return what the model sees."""
        if self.query is None:
            asked = self.pipeline.for_chat(self.assistants)
        else:
            asked = self.pipeline.for_answer(self.query, self.passages, self.nearest)
        for exchange in self.exchanges:
            asked += tool_messages(exchange.used, exchange.said)
        return [*asked, *self.corrections]

    def bare(self) -> "Task":
        """Return the task with nothing but the instructions, the question and corrections."""
        pipeline = replace(self.pipeline, turns=())
        return replace(self, pipeline=pipeline, passages=(), exchanges=())

    @property
    def results(self) -> list[str]:
        """What the tools gave, the oldest first."""
        return [used["result"] for exchange in self.exchanges for _, used in exchange.used]

    def with_results(self, characters: Sequence[int]) -> "Task":
        """Return the task with so many characters of each result; the cut ones say so."""
        left = iter(characters)
        exchanges = [
            replace(
                exchange,
                used=[
                    (id_, {**used, "result": _cut(used["result"], next(left))})
                    for id_, used in exchange.used
                ],
            )
            for exchange in self.exchanges
        ]
        return replace(self, exchanges=exchanges)


@dataclass(frozen=True, kw_only=True, slots=True)
class FittedTask:
    """A task that fits, its tokens as counted, and how much of it had to be left out."""

    task: Task
    turns_cut: int
    passages_cut: int
    results_cut: int = 0
    tokens: int | None = None


async def fit(
    task: Task, window: ContextWindow | None, tools: Sequence[Mapping[str, Any]] = ()
) -> FittedTask:
    """Return the task with what fits of results of tools, of passages by rank, and of turns.

    Without a window the history alone is cut, by characters.

    Raises:
        ModelError: The question alone is too long; tells the numbers.
    """
    pipeline = task.pipeline
    if window is None:
        turns = fitting(pipeline.turns, HISTORY_CHARACTERS)
        return FittedTask(
            task=replace(task, pipeline=replace(pipeline, turns=turns)),
            turns_cut=len(pipeline.turns) - len(turns),
            passages_cut=0,
        )
    bare = replace(task, pipeline=replace(pipeline, turns=()), passages=())
    results = task.results
    try:
        fitted = await window.fit(
            bare.with_results([0] * len(results)).messages(),
            results=results,
            passages=[rendered(n, passage) for n, passage in enumerate(task.passages, 1)],
            turns=pipeline.pairs(),
            tools=tools,
        )
    except ModelError:
        if not task.exchanges:
            raise
        # Even the calls are too long: the oldest are forgotten, never the question.
        return await fit(replace(task, exchanges=task.exchanges[1:]), window, tools)
    if task.passages and not fitted.passages:
        less = await fit(_with_less(task, fitted.tokens, window), window, tools)
        return replace(less, passages_cut=len(task.passages) - 1)
    if fitted.turns < len(pipeline.turns) and _shows_tools(pipeline):
        # What tools gave in earlier turns may take the room of most of these turns.
        without = replace(task, pipeline=replace(pipeline, with_tools=False))
        less = await fit(without, window, tools)
        if len(less.task.pipeline.turns) > 2 * fitted.turns:
            return less
    turns = pipeline.turns[len(pipeline.turns) - fitted.turns :]
    kept = replace(
        task,
        pipeline=replace(pipeline, turns=turns),
        passages=task.passages[: fitted.passages],
    )
    return FittedTask(
        tokens=fitted.tokens,
        task=kept.with_results(fitted.results),
        turns_cut=len(pipeline.turns) - fitted.turns,
        passages_cut=len(task.passages) - fitted.passages,
        results_cut=sum(
            len(result) > characters
            for result, characters in zip(results, fitted.results, strict=True)
        ),
    )


def _shows_tools(pipeline: MessagePipeline) -> bool:
    return pipeline.with_tools and any(turn.record.get("tools") for turn in pipeline.turns)


def _with_less(task: Task, tokens: int, window: ContextWindow) -> Task:
    """Return a task with half of the best passage: one that was found is always shown.

    Raises:
        ModelError: There is no room for any passage beside the question.
    """
    best = task.passages[0]
    if len(best.text) > LEAST_PASSAGE:
        half = replace(best, text=f"{best.text[: len(best.text) // 2]} …")
        return replace(task, passages=[half])
    if task.exchanges:
        return replace(task, exchanges=task.exchanges[1:])
    message = (
        f"The question is too long: with the instructions it has about {tokens:,} tokens, and "
        f"the model can read {window.budget:,}: no room for what was found. Please shorten it."
    )
    raise ModelError("context_too_long", message)


def _cut(result: str, characters: int) -> str:
    if len(result) <= characters:
        return result
    if not characters:
        return "(left out: there is no room for this result any more)"
    return f"{result[:characters]} … (cut: {len(result) - characters} more characters)"
