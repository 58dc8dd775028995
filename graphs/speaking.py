"""Says what the model says: into the turn, and to LangGraph's clients that want tokens."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessageChunk
from langgraph.config import get_config
from langgraph.graph.message import push_message

from chatbot.citations import CitationFilter
from chatbot.domain import Passage
from chatbot.models.tool_calls import ToolCall, ToolCallReader
from chatbot.ports import Ports
from graphs.images import image_markdown
from graphs.listening import listener_of
from graphs.metering import Meter, added, metered
from graphs.prompt import Prompt
from graphs.turn import LiveTurn


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """One reply of the model: its text without what calls tools, the calls, why it ended."""

    text: str
    calls: Sequence[ToolCall] = ()
    finish_reason: str | None = None


class Speaker:
    """Emits the replies of one answer, with checked citations and without any call of a tool.

    A `silent` one keeps the text to itself. Clients of LangGraph's mode `messages` get the same
    pieces, not the model's own tokens: these may hold what nobody is to see.
    """

    def __init__(self, turn: LiveTurn, ports: Ports, *, silent: bool = False) -> None:
        self._turn = turn
        self._ports = ports
        self._silent = silent
        self._citations = CitationFilter(())
        self._pauses = False
        self._meters: list[Meter] = []
        self._has_clients = listener_of(get_config()) is None
        self._message_id = turn.answer_message().id
        turn.so_far = self._facts_so_far

    async def listen(
        self, prompt: Prompt, names: Collection[str], passages: Sequence[Passage]
    ) -> Said:
        """Emit the model's reply and return it, with its calls of tools of these names.

        `passages` are those that the model is shown.
        """
        if not self._turn.answer:  # what was cited stays cited
            self._citations.resolve(passages)
        reader = ToolCallReader(names)
        has_tokens = self._ports.window is not None
        meter = Meter(messages=prompt.messages, tools=prompt.tools, counts=has_tokens)
        self._meters.append(meter)
        said: list[str] = []
        try:
            async with aclosing(metered(self._reply(prompt), meter)) as chunks:
                async for chunk in chunks:
                    self._think(chunk)
                    said.append(reader.feed(chunk))
                    self.say(said[-1])
                    for url in chunk.additional_kwargs.get("images", ()):
                        await self._show_image(url)
        finally:
            # Also of a reply that was stopped or broke, all that was said is kept.
            said.append(reader.end())
            self.say(said[-1])
        return Said(
            text="".join(said), calls=reader.calls(), finish_reason=reader.finish_reason
        )

    def _reply(self, prompt: Prompt) -> AsyncIterator[AIMessageChunk]:
        """Return the reply: the one that was begun early, if that is to the same prompt."""
        early = self._turn.head_start
        if early is None or not early.is_for(prompt):
            self._turn.drop_head_start()
            return prompt.stream(self._ports.model)
        self._turn.head_start = None
        # It rests on what was found early, also where that was searched again.
        self._turn.note(head_start="used", prefetch="used")
        return early.stream(lambda: self._turn.note(head_start="failed"))

    def say(self, text: str) -> None:
        """Emit a piece of the answer."""
        if self._silent or not text:
            return
        if self._pauses and self._turn.answer.strip():
            text = f"\n\n{text.lstrip()}"
        self._pauses = False
        self.emit(self._citations.feed(text))

    def pause(self) -> None:
        """Set what was said so far apart from what comes next."""
        self._pauses = True

    def finish(self) -> None:
        """Emit what was held back and note how the answer came about."""
        self.emit(self._citations.finish())
        self._turn.note(**self._facts_so_far())

    def emit(self, text: str) -> None:
        """Emit a piece as it is."""
        before = len(self._turn.answer)
        self._turn.say(text)
        if piece := self._turn.answer[before:]:
            self._push(piece)

    def _push(self, text: str, **kept: str) -> None:
        if self._has_clients:
            chunk = AIMessageChunk(content=text, additional_kwargs=kept, id=self._message_id)
            push_message(chunk, state_key=None)

    def _think(self, chunk: AIMessageChunk) -> None:
        if thought := chunk.additional_kwargs.get("reasoning_content"):
            self._turn.send("reasoning", thought)
            self._push("", reasoning_content=thought)

    def _facts_so_far(self) -> Mapping[str, Any]:
        asked = [meter for meter in self._meters if meter.facts]
        facts = asked[-1].facts if asked else {}
        return {
            "citations": [citation.as_json() for citation in self._citations.cited],
            "model": asked[-1].model if asked else None,
            "endpoint": facts.get("endpoint"),
            "attempts": [each for meter in self._meters for each in meter.attempts],
            "finish_reason": facts.get("finish_reason"),
            "usage": added(self._meters),
        }

    async def _show_image(self, url: str) -> None:
        if markdown := await image_markdown(url, self._turn, self._ports):
            self.say(f"\n\n{markdown}\n\n")
