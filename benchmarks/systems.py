"""The systems that are compared: ours, and the same steps in other ways.

Each runs in a process of its own (`workers`), those of other frameworks in an environment of
their own. What a system needs is loaded only where it is opened.
"""

import importlib
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from benchmarks.report import progress
from benchmarks.steps import Services

ROOT = Path(__file__).resolve().parent.parent


class System(Protocol):
    """Answers one question of a session in pieces."""

    def stream(self, question: str, session_id: str) -> AsyncIterator[str]:
        """Yield the answer's pieces."""
        ...


@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to do the steps of a turn."""

    opening: str  # module:function
    framework: str = ""  # the distribution, where it is somebody else's

    @property
    def python(self) -> str:
        """The interpreter of its environment: `make bench` names that of the frameworks."""
        if not self.framework:
            return sys.executable
        return str(Path(f"{sys.prefix}-bench") / "bin" / "python")

    def open(self, services: Services) -> AbstractAsyncContextManager[System]:
        """Open it in this process."""
        module, _, function = self.opening.partition(":")
        opening = getattr(importlib.import_module(module), function)
        return cast("AbstractAsyncContextManager[System]", opening(services))


OURS = "ours"
WAYS: dict[str, Way] = {
    OURS: Way(opening="benchmarks.ours:opened"),
    "httpx by hand": Way(opening="benchmarks.handwritten:with_httpx"),
    "aiohttp by hand": Way(opening="benchmarks.handwritten:with_aiohttp"),
    "Haystack": Way(opening="benchmarks.with_haystack:opened", framework="haystack-ai"),
    "LlamaIndex": Way(
        opening="benchmarks.with_llamaindex:opened", framework="llama-index-core"
    ),
}
LOADS_ALL = "the whole history loaded"
LONG_WAYS = {
    OURS: Way(opening="benchmarks.ours:opened"),
    LOADS_ALL: Way(opening="benchmarks.whole_history:opened"),
}
EVERY_WAY = {**WAYS, **LONG_WAYS}


def installed() -> dict[str, Way]:
    """Return the ways that can be compared here, and tell how to get the others."""
    missing = [name for name, way in WAYS.items() if not Path(way.python).exists()]
    if missing:
        progress(f"not installed: {', '.join(missing)}; `make bench` installs them")
    return {name: way for name, way in WAYS.items() if name not in missing}
