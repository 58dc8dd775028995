"""Loads the prompts and fills their holes."""

import logging
import re
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Self

from chatbot.errors import PromptError

logger = logging.getLogger(__name__)

SHIPPED = Path(__file__).resolve().parent.parent / "prompts"
HOLES: Mapping[str, frozenset[str]] = {
    "answer": frozenset({"instructions", "language", "today"}),
    "chat": frozenset({"instructions", "language", "assistants", "today"}),
    "judge": frozenset(),
    "judge_case": frozenset({"question", "passages", "reference", "answer"}),
    "nearest_documents": frozenset({"documents"}),
    "nothing_found": frozenset(),
    "notice_forbidden.en": frozenset(),
    "notice_forbidden.zh": frozenset(),
    "notice_incomplete.en": frozenset({"parts"}),
    "notice_incomplete.zh": frozenset({"parts"}),
    "notice_unavailable.en": frozenset(),
    "notice_unavailable.zh": frozenset(),
    "rewrite_question": frozenset(),
    "router": frozenset({"assistants", "intents"}),
    "schema": frozenset({"schema"}),
    "schema_error": frozenset({"error"}),
    "summarize": frozenset(),
    "summarize_now": frozenset(),
    "summary": frozenset({"summary"}),
    "summary_noted": frozenset(),
    "unanswered": frozenset(),
}


class Prompts:
    """The prompts by name. A hole is `$name`; what fills it is never looked at again."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._templates = {name: Template(text) for name, text in texts.items()}

    @classmethod
    def load(cls, folder: Path | None = None) -> Self:
        """Read every prompt; a file in `folder` replaces the shipped one of the same name.

        Raises:
            PromptError: A file cannot be read, or has a hole that nothing fills.
        """
        if folder is not None and not folder.is_dir():
            message = f"PROMPTS_DIR must be a folder with Markdown files; {folder} is not one."
            raise PromptError(message)
        for name in sorted(path.name for path in folder.glob("*.md")) if folder else ():
            if name.removesuffix(".md") not in HOLES:
                logger.warning("%s in PROMPTS_DIR replaces no prompt", name)
        texts = {}
        for name, holes in HOLES.items():
            own = folder / f"{name}.md" if folder else None
            path = own if own and own.is_file() else SHIPPED / f"{name}.md"
            texts[name] = _checked(path, holes)
        return cls(texts)

    def render(self, name: str, **values: str) -> str:
        """Return the prompt with its holes filled.

        Raises:
            PromptError: There is no such prompt, or a hole was given no value.
        """
        try:
            text = self._templates[name].substitute(values)
        except KeyError as error:
            message = f"The prompt {name!r} is missing or lacks a value for {error}."
            raise PromptError(message) from None
        # An empty hole on a line of its own leaves no gap behind.
        return re.sub(r"\n{3,}", "\n\n", text).strip()


def _checked(path: Path, holes: frozenset[str]) -> str:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        message = f"The prompt {path} cannot be read as UTF-8 text: {error}."
        raise PromptError(message) from None
    template = Template(text)
    allowed = ", ".join(f"${hole}" for hole in sorted(holes)) or "none"
    if not template.is_valid():
        message = (
            f"The prompt {path} has a lone $: write $$ for the sign. Its holes: {allowed}."
        )
        raise PromptError(message)
    if unknown := set(template.get_identifiers()) - holes:
        message = (
            f"The prompt {path} has unknown holes {sorted(unknown)}. Its holes: {allowed}."
        )
        raise PromptError(message)
    return text
