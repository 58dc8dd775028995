"""Reads what a chat completion brings, in whichever dialect an endpoint sends it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from langchain_core.messages import AIMessageChunk
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCallChunk

from chatbot.errors import ModelError
from chatbot.models.call_fragments import CallFragments
from chatbot.models.failures import error_of_frame, model_error
from chatbot.models.finish_reasons import BROKEN, finish_reason
from chatbot.models.reasoning import ThinkTags

NOT_JSON = "its reply is not valid JSON"
OTHER_SHAPE = "its reply has another shape"
NO_ANSWER = "its reply holds no answer"
NO_STREAM = "its reply is neither JSON nor a stream of it"
MOST_TOKENS = 10**9  # that anybody can mean
_OF_TEXT = frozenset({"role", "content"})
_EMPTY = AIMessageChunk(content="")


class Completion:
    """Collects frames, or one whole completion, and gives message chunks.

    What arrives between two calls of `take` becomes one chunk. The reason of the end, the
    model's name and the usage belong to `last`.
    """

    def __init__(self, endpoint: str, secret: str, *, reasoning_opened: bool) -> None:
        self._endpoint = endpoint
        self._secret = secret
        self._tags = ThinkTags(opened=reasoning_opened)
        self._untagged = "" if reasoning_opened else None  # an answer, if no tag ever comes
        self._calls = CallFragments()
        self._answer = ""
        self._reasoning = ""
        self._fragments: list[ToolCallChunk] = []
        self._images: list[str] = []
        self._surrogate = ""
        self.frames = 0
        self.foreign = False  # whether something came that belongs to no stream of frames
        self.begun = False
        self._spoken = False
        self.finish_reason: str | None = None
        self.model_name: str | None = None
        self.usage: UsageMetadata | None = None

    def add_json(self, data: bytes) -> None:
        """Take one frame as it came.

        Raises:
            ModelError: It is not a frame, or it carries an error.
        """
        try:
            frame = _decoded(data)
        except (ValueError, RecursionError) as error:
            raise self.protocol_error(NOT_JSON) from error
        self.add(frame)

    def add(self, frame: object) -> None:
        """Take one frame. See `add_json`."""
        if not isinstance(frame, dict):
            raise self.protocol_error(OTHER_SHAPE)
        choices = frame.get("choices")
        if frame.get("error") or (choices is None and ("code" in frame or "message" in frame)):
            raise error_of_frame(frame, self._endpoint, self._secret)
        self.frames += 1
        self.model_name = _text(frame.get("model")) or self.model_name
        self._add_usage(frame.get("usage"))
        if not choices:
            return
        if not isinstance(choices, list):
            raise self.protocol_error(OTHER_SHAPE)
        for choice in choices:
            if isinstance(choice, dict) and choice.get("index") in (0, None):
                self._add_choice(choice)

    def take(self) -> AIMessageChunk | None:
        """Return what came since the last call, or nothing."""
        if not (self._answer or self._reasoning or self._fragments or self._images):
            return None
        extra: dict[str, Any] = {}
        if self._reasoning:
            extra["reasoning_content"] = self._reasoning
        if self._images:
            extra["images"] = self._images
        if self._fragments:
            chunk = AIMessageChunk(
                content=self._answer,
                additional_kwargs=extra,
                tool_call_chunks=self._fragments,
            )
        else:
            chunk = _chunk(self._answer, extra)
        self._answer = self._reasoning = ""
        self._fragments, self._images = [], []
        return chunk

    def last(self) -> AIMessageChunk:
        """Return the chunk that ends the message.

        Raises:
            ModelError: The endpoint gave no reason for the end: something is missing.
        """
        if self.finish_reason is None:
            if self.foreign and not self.frames:
                raise self.protocol_error(NO_STREAM)
            if self.frames and not self.begun:
                raise self.protocol_error(NO_ANSWER)
            raise model_error("interrupted", self._endpoint)
        self._add_split(self._tags.end())
        if self._surrogate:
            self._answer += "\ufffd"
        if self._untagged and not self._tags.seen and self.finish_reason == "stop":
            self._answer = self._untagged  # the model did not reason this time
        chunk = self.take() or AIMessageChunk(content="")
        chunk.response_metadata = {"finish_reason": self.finish_reason}
        if self.model_name:
            chunk.response_metadata["model_name"] = self.model_name
        chunk.usage_metadata = self.usage
        chunk.chunk_position = "last"
        return chunk

    @property
    def stray_tags(self) -> int:
        """How many closing tags were removed that nothing had opened."""
        return self._tags.stray

    def protocol_error(self, detail: str) -> ModelError:
        """Return the error for a reply that is not a chat completion."""
        return model_error("protocol", self._endpoint, detail)

    def _add_choice(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta")
        if not delta and not self._spoken:  # some repeat it all at the end
            delta = choice.get("message")
        if isinstance(delta, dict):
            self.begun = True
            self._add_delta(delta)
        elif delta is not None:
            raise self.protocol_error(OTHER_SHAPE)
        reason = finish_reason(_text(choice.get("finish_reason")))
        if reason in BROKEN:
            raise model_error("interrupted", self._endpoint)
        self.finish_reason = reason or self.finish_reason
        self._add_usage(choice.get("usage"))

    def _add_delta(self, delta: Mapping[str, Any]) -> None:
        content = delta.get("content")
        if isinstance(content, str):
            self._add_text(content)
            if delta.keys() <= _OF_TEXT:  # as nearly all are
                return
        elif isinstance(content, list):
            self._add_parts(content)
        reasoning = _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))
        self._reasoning += reasoning
        if refusal := _text(delta.get("refusal")):
            self._answer += refusal
        if calls := delta.get("tool_calls"):
            self._add_fragments(self._calls.read(calls))
        elif call := delta.get("function_call"):
            self._add_fragments(self._calls.read([{"index": 0, "function": call}]))
        if images := delta.get("images"):
            self._add_parts(images)
        self._spoken = self._spoken or bool(content or reasoning or calls)

    def _add_text(self, text: str) -> None:
        if text:
            self._add_split(self._tags.feed(self._whole(text)))
            self._spoken = True

    def _add_fragments(self, fragments: Sequence[ToolCallChunk]) -> None:
        """Join what belongs to one call: LangChain expects one fragment of it in a chunk."""
        for fragment in fragments:
            for known in self._fragments:
                if known["index"] == fragment["index"]:
                    known["args"] = (known["args"] or "") + (fragment["args"] or "")
                    known["name"] = (known["name"] or "") + (fragment["name"] or "") or None
                    break
            else:
                self._fragments.append(fragment)

    def _add_parts(self, parts: object) -> None:
        for part in parts if isinstance(parts, list) else []:
            if not isinstance(part, dict):
                continue
            if text := _text(part.get("text")):
                self._add_text(text)
            elif thinking := part.get("thinking"):
                self._reasoning += _joined(thinking)
            elif image := part.get("image_url") or part.get("image"):
                url = image.get("url") if isinstance(image, dict) else image
                if isinstance(url, str):
                    self._images.append(url)

    def _add_split(self, parts: tuple[str, str]) -> None:
        answer, reasoning = parts
        self._answer += answer
        self._reasoning += reasoning
        if self._untagged is not None:
            self._untagged += reasoning

    def _whole(self, text: str) -> str:
        """Join a character that was cut between two frames into its two surrogates."""
        if not self._surrogate and text.isascii():
            return text
        text, self._surrogate = self._surrogate + text, ""
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._surrogate = text[:-1], text[-1]
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def _add_usage(self, usage: object) -> None:
        if not isinstance(usage, dict):
            return
        read = _count(usage.get("prompt_tokens"))
        written = _count(usage.get("completion_tokens"))
        if not read:  # nothing is counted yet, or only a part: then all is estimated
            return
        details = usage.get("completion_tokens_details")
        cached = usage.get("prompt_tokens_details")
        self.usage = UsageMetadata(
            input_tokens=read, output_tokens=written, total_tokens=read + written
        )
        if isinstance(details, dict) and _count(details.get("reasoning_tokens")):
            reasoning = _count(details.get("reasoning_tokens"))
            self.usage["output_token_details"] = {"reasoning": reasoning}
        if isinstance(cached, dict) and _count(cached.get("cached_tokens")):
            self.usage["input_token_details"] = {
                "cache_read": _count(cached.get("cached_tokens"))
            }


def _decoded(data: bytes) -> object:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass  # it may still hold half a character, NaN or a byte order mark
    try:
        return json.loads(data)
    except UnicodeDecodeError:  # a character that was cut is no reason to lose the rest
        return json.loads(data.decode("utf-8", "replace"))


def _chunk(answer: str, extra: dict[str, Any]) -> AIMessageChunk:
    """Return a chunk without tool calls, at a third of the cost: there is nothing to check."""
    fields: dict[str, Any] = {
        "content": answer,
        "additional_kwargs": extra,
        "response_metadata": {},
        "tool_calls": [],
        "invalid_tool_calls": [],
        "tool_call_chunks": [],
    }
    return _EMPTY.model_copy(update=fields)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return int(value) if isinstance(value, int | float) and 0 < value < MOST_TOKENS else 0


def _joined(thinking: object) -> str:
    if isinstance(thinking, str):
        return thinking
    parts = thinking if isinstance(thinking, list) else []
    return "".join(_text(part.get("text")) for part in parts if isinstance(part, dict))
