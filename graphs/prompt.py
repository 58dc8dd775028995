"""One call of the model for an answer."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.runnables import Runnable

# LangGraph keeps the tokens of a model with this tag out of what its clients see.
NO_STREAM = "nostream"


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """All that one call of the model for an answer depends on: equal ones ask the same."""

    messages: Sequence[BaseMessage]
    tools: Sequence[dict[str, Any]] = ()
    choice: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def stream(
        self, model: BaseChatModel, metadata: Mapping[str, Any] | None = None
    ) -> AsyncIterator[AIMessageChunk]:
        """Ask the model. The metadata is for the trace."""
        asked: Runnable[Any, Any] = model
        if self.tools:
            chosen = {"tool_choice": self.choice} if self.choice else {}
            asked = model.bind_tools(self.tools, **chosen)
        bound = asked.bind(**self.options).with_config(
            run_name="answer", tags=[NO_STREAM], metadata=dict(metadata or {})
        )
        return cast("AsyncIterator[AIMessageChunk]", bound.astream(self.messages))
