"""Fits the prompt of an answer into what the model can read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from langchain_core.messages import BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from chatbot.domain import Assistant, Passage
from chatbot.messages import HISTORY_CHARACTERS, MessagePipeline, fitting, rendered
from chatbot.models.context_window import ContextWindow
from chatbot.tools.toolbox import Toolbox


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """What is to be answered: from passages to a query, or, without one, in conversation."""

    pipeline: MessagePipeline
    assistants: Sequence[Assistant] = ()
    query: str | None = None
    passages: Sequence[Passage] = ()

    def messages(self) -> list[BaseMessage]:
        """Return what the model sees."""
        if self.query is None:
            return self.pipeline.for_chat(self.assistants)
        return self.pipeline.for_answer(self.query, self.passages)


@dataclass(frozen=True, kw_only=True, slots=True)
class FittedTask:
    """A task that fits, the tokens it was counted to have, and how much had to be left out."""

    task: Task
    tokens: int | None
    turns_cut: int
    passages_cut: int


async def fit(task: Task, window: ContextWindow | None, toolbox: Toolbox) -> FittedTask:
    """Return the task with the passages, by rank, and then the newest turns that fit.

    Without a window the history alone is cut, by characters.

    Raises:
        ModelError: The question alone is too long; tells the numbers.
    """
    pipeline = task.pipeline
    if window is None:
        turns = fitting(pipeline.turns, HISTORY_CHARACTERS)
        passages = task.passages
        tokens = None
    else:
        bare = replace(task, pipeline=replace(pipeline, turns=()), passages=())
        fitted = await window.fit(
            bare.messages(),
            passages=[rendered(n, passage) for n, passage in enumerate(task.passages, 1)],
            turns=pipeline.pairs(),
            tools=[convert_to_openai_tool(tool) for tool in toolbox.tools],
        )
        turns = pipeline.turns[len(pipeline.turns) - fitted.turns :]
        passages = task.passages[: fitted.passages]
        tokens = fitted.tokens
    return FittedTask(
        task=replace(task, pipeline=replace(pipeline, turns=turns), passages=passages),
        tokens=tokens,
        turns_cut=len(pipeline.turns) - len(turns),
        passages_cut=len(task.passages) - len(passages),
    )
