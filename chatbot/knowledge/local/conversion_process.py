"""Turns documents into text, in a process of its own, where a hostile file can do no harm.

Reads requests from standard input, each a line of JSON with `suffix` and `size` and then the
file itself. Answers each with lines of JSON: one for each `page`, then the `end` or a
`problem`.
"""

import io
import json
import os
import re
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO

MEMORY = 2 * 2**30  # bytes of address space; the libraries themselves take a fifth of it
CPU_SECONDS = 600
UNPACKED = 256 * 2**20
TEXT = 16 * 2**20  # characters
_IMAGE = re.compile(r"!\[([^\]]*)\]\([^)]*\)")
_EMPTY_CELL = re.compile(r"(?<=\| )(?:NaN|NaT|None|Unnamed: \d+)(?= \|)")
_WHOLE_NUMBER = re.compile(r"(?<=\| )(-?\d+)\.0(?= \|)")


class ProblemError(Exception):
    """A file cannot be read; the text says why, in words for people."""


def main() -> None:
    """Answer requests until there are none, or one took all the memory."""
    _limit()
    requests, answers = os.fdopen(0, "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a library prints is no answer
    while head := requests.readline():
        request = json.loads(head)
        _limit_time()
        for answer in _answers(request["suffix"], requests.read(request["size"])):
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()
            if answer.get("exhausted"):
                return


def _limit() -> None:
    with suppress(ImportError, ValueError, OSError):  # there is no such limit on Windows
        import resource  # noqa: PLC0415

        for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
            resource.setrlimit(kind, (most, most))


def _limit_time() -> None:
    """End by itself where nobody is left who would end a conversion that hangs."""
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415

        until = int(time.process_time()) + CPU_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))


def _answers(suffix: str, content: bytes) -> Iterator[dict[str, Any]]:
    """Give each page as it is ready, then the end, or why there is no more."""
    size, said = 0, False
    try:
        for page in READERS[suffix](content):
            size += len(page)
            if size > TEXT:
                message = f"it holds more than {TEXT // 2**20} million characters"
                raise ProblemError(message)  # noqa: TRY301 - as the readers do
            said = said or any(character.isalnum() for character in page)
            yield {"page": page}
        if not said:
            hint = ": a scan has to be recognized (OCR) first" if suffix == ".pdf" else ""
            yield {"problem": f"it holds no text{hint}"}
    except ProblemError as error:
        yield {"problem": str(error)}
    except (MemoryError, RecursionError):
        yield {"problem": "it takes too much memory", "exhausted": True}
    except Exception as error:  # noqa: BLE001 - parsers of foreign files raise anything
        reason = type(error).__name__
        yield {"problem": f"it is damaged or not what its name says ({reason})"}
    else:
        if said:
            yield {"end": True}


def _pdf(content: bytes) -> Iterator[str]:
    """Give each page, by itself: the converter does not say where pages end."""
    import pypdfium2  # noqa: PLC0415 - each library is loaded for the first file that needs it

    try:
        document = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        if "password" in str(error).lower():
            message = "it is protected by a password"
            raise ProblemError(message) from None
        raise
    for number in range(len(document)):
        single, file = pypdfium2.PdfDocument.new(), io.BytesIO()
        single.import_pages(document, [number])
        single.save(file)
        single.close()
        yield _markdown("PdfConverter", file, ".pdf")


def _word(content: bytes) -> Iterator[str]:
    yield _markdown("DocxConverter", _unpackable(content), ".docx")


def _excel(content: bytes) -> Iterator[str]:
    import pandas as pd  # noqa: PLC0415

    pd.set_option("display.max_colwidth", None)  # else long cells are cut
    text = _markdown("XlsxConverter", _unpackable(content), ".xlsx")
    yield _WHOLE_NUMBER.sub(r"\1", _EMPTY_CELL.sub("", text))


def _html(content: bytes) -> Iterator[str]:
    from bs4 import UnicodeDammit  # noqa: PLC0415
    from markitdown.converters import HtmlConverter  # noqa: PLC0415

    decoded = UnicodeDammit(content, ["utf-8", "gb18030"], is_html=True).unicode_markup or ""
    result = HtmlConverter().convert_string(decoded)
    title = " ".join((result.title or "").split())
    heading = f"# {title}\n\n" if title and not result.markdown.startswith("# ") else ""
    yield heading + _IMAGE.sub(r"\1", result.markdown)


def _markdown(converter: str, file: BinaryIO, suffix: str) -> str:
    from markitdown import StreamInfo, converters  # noqa: PLC0415

    file.seek(0)
    found = getattr(converters, converter)().convert(file, StreamInfo(extension=suffix))
    return _IMAGE.sub(r"\1", found.markdown)


def _unpackable(content: bytes) -> BinaryIO:
    """Return the file, unless it would unpack to far more than it is."""
    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        if sum(each.file_size for each in packed.infolist()) > UNPACKED:
            message = f"it unpacks to more than {UNPACKED // 2**20} MiB"
            raise ProblemError(message)
    return io.BytesIO(content)


READERS: dict[str, Callable[[bytes], Iterator[str]]] = {
    ".pdf": _pdf,
    ".docx": _word,
    ".xlsx": _excel,
    ".html": _html,
    ".htm": _html,
}

if __name__ == "__main__":
    main()
