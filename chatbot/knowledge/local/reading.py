"""Reads what lies in the folder: bytes, text in its encodings, profiles of assistants."""

import codecs
import os
import stat
import tomllib
from pathlib import Path

from chatbot.knowledge.local.folder import File, inside, largest

_ASCII = 0x80
_MOSTLY = 0.8
_LARGEST_PROFILE = 64 * 2**10
# A pipe is not waited for; a link that came after the look at the path is not followed.
_OPENING = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class UnreadableError(Exception):
    """A file cannot be used as a document; the text says why."""


def read_bytes(folder: Path, name: str) -> bytes:
    """Return the content of the file at the path `name` below the folder.

    Raises:
        UnreadableError: It cannot be opened, leads out of the folder, or is too large.
    """
    try:
        path = Path(os.path.realpath(folder / name, strict=True))
        if not inside(path, folder.resolve(strict=True)):
            message = "it does not lie in the folder"
            raise UnreadableError(message)
        with os.fdopen(os.open(path, _OPENING), "rb") as opened:
            regular = stat.S_ISREG(os.fstat(opened.fileno()).st_mode)
            content = opened.read(largest(name) + 1) if regular else b""
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no name of a file"
        message = f"it cannot be opened: {reason}"
        raise UnreadableError(message) from None
    if len(content) > largest(name):
        message = f"the file is larger than {largest(name) // 2**20} MiB"
        raise UnreadableError(message)
    return content


def decode(content: bytes) -> str:
    """Return the text, in UTF-8, UTF-16 with its mark, or as an older Windows wrote it.

    Raises:
        UnreadableError: It is not text, or holds none.
    """
    for mark, encoding in ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if content.startswith(mark):
            return _checked(content, (encoding,))
    if b"\0" in content:
        message = "it is not a text file"
        raise UnreadableError(message)
    # few bytes beyond ASCII that are no Chinese: accents as Western Windows writes them
    western = sum(byte < _ASCII for byte in content) > _MOSTLY * len(content)
    return _checked(content, ("utf-8-sig", "gb18030", *(("cp1252",) if western else ())))


def _checked(content: bytes, encodings: tuple[str, ...]) -> str:
    for encoding in encodings:
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        # GB18030 accepts nearly any bytes, so what it gives must look like text
        odd = sum(1 for character in text[:10_000] if not _is_text(character))
        if odd * 50 > min(len(text), 10_000):
            break
        if not text.strip():
            message = "the file is empty"
            raise UnreadableError(message)
        return "".join(c for c in text if _is_text(c)) if odd else text
    message = "it is not text in UTF-8 or GB18030"
    raise UnreadableError(message)


def _is_text(character: str) -> bool:
    return character in "\t\n\r\f" or not ("\0" <= character < " " or character == "\x7f")


def read_profile(folder: Path, file: File) -> tuple[str, str]:
    """Return the name and description that an `assistant.toml` gives, each may be "".

    Raises:
        UnreadableError: It cannot be opened or is not such a file.
    """
    if file.size > _LARGEST_PROFILE:
        message = "the file is too large for a profile"
        raise UnreadableError(message)
    try:
        profile = tomllib.loads(read_bytes(folder, file.name).decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"it is not a TOML file: {error}"
        raise UnreadableError(message) from None
    values = profile.get("name", ""), profile.get("description", "")
    if not all(isinstance(value, str) for value in values):
        message = "name and description must be strings"
        raise UnreadableError(message)
    name, description = (" ".join(str(value).split()) for value in values)
    return name[:100], description[:1000]
