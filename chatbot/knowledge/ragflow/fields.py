"""Reads single values of foreign JSON: every function takes anything."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Row = Mapping[str, Any]


def rows_of(value: object) -> Iterator[Row]:
    """Yield the objects of a list, or of an object that has them by their ids."""
    values: Iterable[object] = ()
    if isinstance(value, Mapping):
        values = value.values()
    elif isinstance(value, list):
        values = value
    return (each for each in values if isinstance(each, Mapping))


def text(value: object) -> str:
    """Return a string of the reply without white space around it, or ""."""
    return value.strip() if isinstance(value, str) else ""


def first(row: Row, *names: str) -> object:
    """Return the first of the named values that is something."""
    return next((row[name] for name in names if row.get(name)), None)


def row_of(value: object) -> Row:
    """Return an object, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def texts(value: object) -> list[str]:
    """Return the strings of a list."""
    return [found for each in value if (found := text(each))] if isinstance(value, list) else []


def number_of(value: object) -> float | None:
    """Return a finite number, also one that is written as a string."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def count_of(value: object, default: int, most: int | None = None) -> int:
    """Return a whole number from 1 to `most`, or the default."""
    number = number_of(value)
    count = default if number is None or number < 1 else int(number)
    return count if most is None else min(count, most)
