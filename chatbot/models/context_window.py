"""Fits a request into what a model can read."""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from langchain_core.messages import BaseMessage

from chatbot.errors import ModelError
from chatbot.models.tokens import (
    CautiousCounter,
    TokenCounter,
    beside_the_loop,
    characters_of,
)

UNKNOWN_WINDOW = 32_768
RESERVED_TOKENS = 4_096
HUNDRED_K = 131_072
LEAST_CUT = 50  # tokens: less of a result says nothing

# The first pattern that fits counts. What is not listed is taken to be small.
_WINDOWS: Sequence[tuple[re.Pattern[str], int]] = [
    (re.compile(pattern), tokens)
    for pattern, tokens in (
        (r"gpt-4\.1", 1_047_576),
        (r"gpt-5", 272_000),
        (r"gpt-4o|chatgpt-4o|gpt-4-turbo|gpt-oss", 128_000),
        (r"gpt-4", 8_192),
        (r"gpt-3\.5", 16_385),
        (r"(^|/)o[1-9]", 200_000),
        (r"qwen-long|qwen-turbo|qwen-flash", 1_000_000),
        (r"qwen3-max", 262_144),
        (r"qwen-plus|qwen-max|qwq|qvq", HUNDRED_K),
        (r"claude", 200_000),
        (r"gemini", 1_048_576),
        (r"deepseek|kimi|glm-4|llama-?3\.[1-3]|mistral-(large|small)", HUNDRED_K),
    )
]


@dataclass(frozen=True, kw_only=True, slots=True)
class Fitted:
    """How many passages, from the best, and turns, from the newest, fit; and the tokens.

    `results` are the characters that each result of a tool may have.
    """

    passages: int
    turns: int
    tokens: int
    results: Sequence[int] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextWindow:
    """What a model can read at once, of which some is kept free for its answer."""

    counter: TokenCounter | CautiousCounter
    tokens: int = UNKNOWN_WINDOW
    reserved: int = RESERVED_TOKENS

    @property
    def budget(self) -> int:
        """The tokens that a request may have."""
        return self.tokens - min(self.reserved, self.tokens // 2)

    def smaller(self, sent: int | None = None, *, least: int = 0) -> Self:
        """Return the window to try after an endpoint said that so many tokens are too long.

        It has room for `least`, without which there is nothing to ask.
        """
        budget = max(least, int(0.7 * min(self.budget, sent or self.budget)))
        reserved = min(self.reserved, budget)
        return replace(self, tokens=budget + reserved, reserved=reserved)

    def reserving(self, tokens: object) -> Self:
        """Return the window with so many tokens kept free, if that is a number of tokens."""
        if not isinstance(tokens, int) or tokens <= 0:
            return self
        return replace(self, reserved=tokens)

    async def fit(
        self,
        fixed: Sequence[BaseMessage],
        *,
        results: Sequence[str] = (),
        passages: Sequence[str] = (),
        turns: Sequence[Sequence[BaseMessage]] = (),
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> Fitted:
        """Return what fits beside the `fixed` messages: results, then passages, then turns.

        `fixed` holds the instructions and the question. Of the `results` of tools the newest,
        which is the last, goes first; the first that does not fit whole is cut, those before it
        are left out. Where there are passages, results take half of the room at most.
        `passages` begin with the best, `turns` with the oldest; either is whole or left out.

        The tokenizer is only read where quick estimates say that something might not fit.

        Raises:
            ModelError: The fixed messages alone are too long. Tells both numbers.
        """
        attempt = partial(self._fit, fixed, results, passages, turns, tools)
        said = [*fixed, *(message for turn in turns for message in turn)]
        characters = characters_of(said) + sum(map(len, [*results, *passages]))
        try:
            fitted = await beside_the_loop(self.counter, characters, attempt)
        except ModelError:
            if self.counter.is_loaded:
                raise
        else:
            whole = Fitted(
                passages=len(passages),
                turns=len(turns),
                tokens=fitted.tokens,
                results=[len(result) for result in results],
            )
            if fitted == whole or self.counter.is_loaded:
                return fitted
        await self.counter.load()
        return await asyncio.to_thread(attempt)

    def _fit(
        self,
        fixed: Sequence[BaseMessage],
        results: Sequence[str],
        passages: Sequence[str],
        turns: Sequence[Sequence[BaseMessage]],
        tools: Sequence[Mapping[str, Any]],
    ) -> Fitted:
        """See `fit`. Counting long texts takes time: not in the event loop."""
        used = self.counter.count_messages(fixed, tools)
        if used > self.budget:
            message = (
                f"The question is too long: with the instructions it has about {used:,} "
                f"tokens, and the model can read {self.budget:,}. Please shorten it."
            )
            raise ModelError("context_too_long", message)
        room = (self.budget - used) // (2 if passages else 1)
        kept_results, taken = self._cut(results, room)
        sizes = (self.counter.count(passage) for passage in passages)
        kept_passages, used = _taken(sizes, used + taken, self.budget)
        count = self.counter.count_message
        sizes = (sum(count(message) for message in turn) for turn in reversed(turns))
        kept_turns, used = _taken(sizes, used, self.budget)
        return Fitted(
            passages=kept_passages, turns=kept_turns, tokens=used, results=kept_results
        )

    def _cut(self, results: Sequence[str], room: int) -> tuple[list[int], int]:
        """Return how many characters of each result fit into the room, and what they take."""
        kept: list[int] = []
        left = room
        for result in reversed(results):
            size = self.counter.count(result)
            characters = len(result)
            while size > left and characters:
                # Not all characters have as many tokens: a little less than the rule of three.
                characters = int(characters * left / size * 0.95) if left >= LEAST_CUT else 0
                size = self.counter.count(result[:characters])
            left = left - size if characters == len(result) else 0
            kept.insert(0, characters)
        return kept, room - left


def _taken(sizes: Iterable[int], used: int, budget: int) -> tuple[int, int]:
    """Return how many of the sizes fit, in their order, and what is used then."""
    kept = 0
    for size in sizes:
        if used + size > budget:
            break
        used += size
        kept += 1
    return kept, used


def window_of(model: str) -> int:
    """Return how many tokens a model of this name can read, as far as that is known."""
    name = model.lower()
    return next(
        (tokens for pattern, tokens in _WINDOWS if pattern.search(name)), UNKNOWN_WINDOW
    )
