"""Finds the documents below a folder and reads them, whatever else lies there."""

import codecs
import os
import stat
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MARKDOWN = frozenset({".md", ".markdown"})
PLAIN = frozenset({".txt", ".text"})
LARGEST = 8 * 2**20  # bytes
PROFILE = "assistant.toml"
ROOT = "."  # the id of the assistant that the files directly in the folder form

_ASCII = 0x80
_MOSTLY = 0.8
_LARGEST_PROFILE = 64 * 2**10
_DEEPEST = 24


@dataclass(frozen=True, slots=True)
class File:
    """A document as the folder lists it. `name` is its path below the folder, with `/`."""

    name: str
    size: int
    modified: int

    @property
    def assistant(self) -> str:
        """The id of the assistant it belongs to: the sub-folder, or `ROOT`."""
        first, slash, _ = self.name.partition("/")
        return first if slash else ROOT

    @property
    def markdown(self) -> bool:
        """Whether it is Markdown rather than plain text."""
        return Path(self.name).suffix.lower() in MARKDOWN


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies in the folder: documents, profiles of assistants, and what was left out.

    `skipped` maps a path below the folder to the reason in words for people.
    """

    files: tuple[File, ...]
    profiles: tuple[File, ...]
    skipped: dict[str, str] = field(default_factory=dict, compare=False)


class UnreadableError(Exception):
    """A file cannot be used as a document; the text says why."""


def list_folder(folder: Path) -> Listing:
    """List the documents below the folder, without opening one.

    Raises:
        OSError: The folder itself cannot be listed.
    """
    files: list[File] = []
    profiles: list[File] = []
    skipped: dict[str, str] = {}
    for name, found in _walk(folder, folder.resolve(strict=True), "", skipped):
        suffix = Path(name).suffix.lower()
        if name.count("/") <= 1 and name.rsplit("/", 1)[-1] == PROFILE:
            profiles.append(File(name, found.st_size, found.st_mtime_ns))
        elif suffix not in MARKDOWN | PLAIN:
            skipped[name] = "only Markdown and text files are read"
        elif found.st_size == 0:
            skipped[name] = "the file is empty"
        elif found.st_size > LARGEST:
            skipped[name] = f"the file is larger than {LARGEST // 2**20} MiB"
        else:
            files.append(File(name, found.st_size, found.st_mtime_ns))
    files.sort(key=lambda file: file.name)
    profiles.sort(key=lambda file: file.name)
    return Listing(tuple(files), tuple(profiles), skipped)


def _walk(
    folder: Path, root: Path, prefix: str, skipped: dict[str, str]
) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(folder) as entries:
        children = sorted(entries, key=lambda entry: entry.name)
    for entry in children:
        name = prefix + entry.name
        if entry.name.startswith((".", "~$")):
            continue
        if not entry.name.isprintable():
            skipped[repr(name)] = "its name has characters that cannot be shown"
            continue
        try:
            if entry.is_symlink() and not _inside(Path(entry.path), root):
                skipped[name] = "the link leads out of the folder"
                continue
            found = entry.stat()
            if stat.S_ISREG(found.st_mode):
                yield name, found
            elif not stat.S_ISDIR(found.st_mode):
                skipped[name] = "it is neither a file nor a folder"
            elif entry.is_symlink():
                skipped[name] = "links to folders are not followed"
            elif prefix.count("/") >= _DEEPEST:
                skipped[name] = f"it lies more than {_DEEPEST} folders deep"
            else:
                yield from _walk(Path(entry.path), root, name + "/", skipped)
        except OSError as error:
            skipped[name] = f"it cannot be opened: {error.strerror}"


def _inside(path: Path, root: Path) -> bool:
    return Path(os.path.realpath(path, strict=True)).is_relative_to(root)


def read_bytes(folder: Path, file: File) -> bytes:
    """Return the file's content.

    Raises:
        UnreadableError: It cannot be opened or has grown too large.
    """
    try:
        with (folder / file.name).open("rb") as opened:
            content = opened.read(LARGEST + 1)
    except OSError as error:
        message = f"it cannot be opened: {error.strerror}"
        raise UnreadableError(message) from None
    if len(content) > LARGEST:
        message = f"the file is larger than {LARGEST // 2**20} MiB"
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
        profile = tomllib.loads(read_bytes(folder, file).decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"it is not a TOML file: {error}"
        raise UnreadableError(message) from None
    values = profile.get("name", ""), profile.get("description", "")
    if not all(isinstance(value, str) for value in values):
        message = "name and description must be strings"
        raise UnreadableError(message)
    name, description = (" ".join(str(value).split()) for value in values)
    return name[:100], description[:1000]
