"""Text on its way to a terminal: nothing in it may steer the terminal."""

import json
import re
import sys

# Control characters but tab and line break, and those that change the direction of writing.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def plain(text: str) -> str:
    """Return the text without what a terminal would obey; documents and models wrote it."""
    return _STEERING.sub("", text.replace("\r\n", "\n"))


def in_one_line(text: str, width: int | None = None) -> str:
    """Return the text in one line, cut to `width` columns where it is longer."""
    line = " ".join(plain(text).split())
    if width is None:
        return line
    from rich.cells import cell_len, set_cell_size  # noqa: PLC0415 - refusals and --help need none

    if cell_len(line) <= width:
        return line
    return set_cell_size(line, width - 1).rstrip() + "…"  # a Chinese character has two columns


def complain(message: str) -> None:
    """Say on stderr what went wrong."""
    print(plain(message), file=sys.stderr, flush=True)  # noqa: T201 - what a command is for


def print_json(data: object) -> None:
    """Write plain JSON to stdout, as people can read it."""
    sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2, default=str) + "\n")
