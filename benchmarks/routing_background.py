"""Counts how common English words are in expository prose, for `chatbot/terms.json`.

The prose is what comes with Python itself: the docstrings of its standard library and the text
of its language reference, so anybody can count again.
"""

import ast
import json
import pydoc_data.topics
import re
import sysconfig
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from chatbot.text import stem

TARGET = Path(__file__).parent.parent / "chatbot" / "terms.json"
RAREST = 4  # a word that is seen less often is taken as unknown


def prose() -> Iterator[str]:
    """Give the texts to count."""
    yield from pydoc_data.topics.topics.values()
    library = Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.rglob("*.py")):
        if {"site-packages", "test", "tests", "idle_test"} & set(path.parts):
            continue
        try:
            tree = ast.parse(path.read_text("utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(
                node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            ):
                yield ast.get_docstring(node) or ""


def main() -> None:
    """Write the table: a stem, and how often it occurs in a million words."""
    counts: Counter[str] = Counter()
    for text in prose():
        counts.update(stem(word) for word in re.findall(r"[a-z]+", text.lower()))
    total = counts.total()
    table = {
        word: round(count * 1e6 / total)
        for word, count in sorted(counts.items())
        if count >= RAREST
    }
    TARGET.write_text(json.dumps(table, indent=0) + "\n", encoding="utf-8")
    print(f"{len(table)} words of {total} in {TARGET.name}")  # noqa: T201 - its output


if __name__ == "__main__":
    main()
