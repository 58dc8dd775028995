"""Writes requests for chat completions."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_openai_messages

_ONLY_FOR_THE_SDK = ("extra_headers", "extra_query", "timeout", "stream_usage")
_WITH_DEVELOPERS = re.compile(r"o\d")
_WITH_ONE_TEMPERATURE = re.compile(r"gpt-5(?!.*chat)", re.IGNORECASE)


def completion_request(
    model: str,
    messages: Sequence[BaseMessage],
    options: Mapping[str, Any],
    *,
    of_openai: bool,
) -> dict[str, Any]:
    """Return the body of a request, with the options as they are.

    OpenAI's own models have newer names for some things than those who speak like them.
    """
    body = {
        name: value
        for name, value in options.items()
        if value is not None and name not in _ONLY_FOR_THE_SDK
    }
    body |= body.pop("extra_body", {})
    body |= {"model": model, "messages": _told(messages)}
    old, new = "max_tokens", "max_completion_tokens"
    given, wanted = (old, new) if of_openai else (new, old)
    if given in body:
        body[wanted] = body.pop(given)
    if _WITH_DEVELOPERS.match(model):
        for message in body["messages"]:
            if message["role"] == "system":
                message["role"] = "developer"
    return body


def takes_temperature(model: str) -> bool:
    """Whether a model of this name can be given a temperature."""
    return _WITH_ONE_TEMPERATURE.match(model) is None


def _told(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    told = convert_to_openai_messages(messages)
    assert isinstance(told, list)  # noqa: S101 - as what it was given
    for message in told:
        if "tool_calls" in message and not message["content"]:
            message["content"] = None  # an empty text is refused by some beside calls
    return told
