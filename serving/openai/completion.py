"""The events of a turn as a completion, whole or in chunks."""

import json
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from chatbot.errors import ChatbotError
from chatbot.events import Event
from serving.http.frames import HEARTBEAT
from serving.http.running import RunningTurn
from serving.openai.sources import sources

HEARTBEAT_SECONDS = 10.0
DONE = b"data: [DONE]\n\n"
FINISHED = {"length": "length", "content_filter": "content_filter"}


class CompletionError(ChatbotError):
    """The turn failed: what its error event said."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        super().__init__(data["message"], retry_after=data.get("retry_after"))
        self.code = data["code"]
        self.retryable = bool(data.get("retryable"))


class Completion:
    """One completion of the model `model`. `plain` answers have no sources at their foot."""

    def __init__(self, turn: RunningTurn, model: str, *, plain: bool) -> None:
        self._turn = turn
        self._head = {"id": f"chatcmpl-{turn.id}", "created": int(time.time()), "model": model}
        self._plain = plain
        self._citations: list[Mapping[str, Any]] = []
        self._usage: Mapping[str, Any] = {}

    async def whole(self) -> dict[str, Any]:
        """Return the answer when it is complete.

        Raises:
            CompletionError: The turn failed.
        """
        reasoning: list[str] = []
        async with aclosing(self._events()) as events:
            async for event in events:
                if event is not None and event["type"] == "reasoning":
                    reasoning.append(event["data"])
                if event is not None and event["type"] == "end":
                    end = event["data"]
        message: dict[str, Any] = {
            "role": "assistant",
            "content": end["full_answer"] + self._foot(),
            "citations": self._citations,
        }
        if reasoning:
            message["reasoning_content"] = "".join(reasoning)
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": _finish(end),
            "logprobs": None,
        }
        return {
            **self._head,
            "object": "chat.completion",
            "choices": [choice],
            "usage": self._tokens(),
        }

    async def chunks(self, *, with_usage: bool) -> AsyncGenerator[bytes, None]:
        """Yield the answer as it comes, as server-sent events."""
        yield self._chunk({"role": "assistant", "content": ""})
        try:
            async with aclosing(self._events()) as events:
                async for event in events:
                    if event is None:
                        yield HEARTBEAT
                    elif event["type"] == "content":
                        yield self._chunk({"content": event["data"]})
                    elif event["type"] == "reasoning":
                        yield self._chunk({"reasoning_content": event["data"]})
                    elif event["type"] == "end":
                        if foot := self._foot():
                            yield self._chunk({"content": foot})
                        last = {"citations": self._citations} if self._citations else {}
                        yield self._chunk(last, finish=_finish(event["data"]))
        except CompletionError as error:
            yield _data({"error": told(error)})
            return
        if with_usage:
            head = {**self._head, "object": "chat.completion.chunk"}
            yield _data({**head, "choices": [], "usage": self._tokens()})
        yield DONE

    async def _events(self) -> AsyncGenerator[Event | None, None]:
        """Yield the events; none where nothing comes for a while.

        Raises:
            CompletionError: The turn failed.
        """
        async with aclosing(self._turn.batches(wait_seconds=HEARTBEAT_SECONDS)) as batches:
            async for batch in batches:
                if not batch:
                    yield None
                for event, _ in batch:
                    if event["type"] == "error":
                        raise CompletionError(event["data"])
                    if event["type"] == "citations":
                        self._citations = event["data"]
                    elif event["type"] == "usage":
                        self._usage = event["data"]
                    yield event

    def _foot(self) -> str:
        return "" if self._plain else sources(self._citations)

    def _tokens(self) -> dict[str, int]:
        read = int(self._usage.get("input_tokens") or 0)
        written = int(self._usage.get("output_tokens") or 0)
        return {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        }

    def _chunk(self, delta: Mapping[str, Any], *, finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return _data({**self._head, "object": "chat.completion.chunk", "choices": [choice]})


def told(error: ChatbotError) -> dict[str, Any]:
    """Return an error as the clients of this API read it, with what ours says beside."""
    return {
        "message": error.message,
        "type": error.code,
        "param": None,
        "code": error.code,
        "retryable": error.retryable,
        "retry_after": error.retry_after,
    }


def _finish(end: Mapping[str, Any]) -> str:
    return FINISHED.get(end["finish_reason"], "stop")


def _data(data: Mapping[str, Any]) -> bytes:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str)
    return f"data: {text}\n\n".encode(errors="replace")
