"""Finds the documents below a folder, whatever else lies there."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path

MARKDOWN = frozenset({".md", ".markdown"})
PLAIN = frozenset({".txt", ".text"})
CONVERTED = frozenset({".pdf", ".docx", ".xlsx", ".html", ".htm"})
LARGEST = 8 * 2**20  # bytes of a text
LARGEST_CONVERTED = 64 * 2**20  # of a file whose text is a part of it
PROFILE = "assistant.toml"
ROOT = "."  # the id of the assistant that the files directly in the folder form

_DEEPEST = 24
_PACKAGES = {".pdf": "pdfplumber", ".docx": "mammoth", ".xlsx": "openpyxl"}


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
    def suffix(self) -> str:
        """What kind of file it is: the end of its name, in small letters, with the dot."""
        return suffix_of(self.name)


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies in the folder: documents, profiles of assistants, and what was left out.

    `skipped` maps a path below the folder to the reason in words for people.
    """

    files: tuple[File, ...]
    profiles: tuple[File, ...]
    skipped: dict[str, str] = field(default_factory=dict, compare=False)


def suffix_of(name: str) -> str:
    """Return the end of the name, in small letters, with the dot."""
    dot = name.rfind(".")
    return name[dot:].lower() if dot > name.rfind("/") + 1 else ""


def largest(name: str) -> int:
    """Return how many bytes a file of this kind may have."""
    return LARGEST_CONVERTED if suffix_of(name) in CONVERTED else LARGEST


def refusal(name: str, size: int) -> str:
    """Return why a file of this name and size is not read, or ""."""
    suffix = suffix_of(name)
    if suffix not in MARKDOWN | PLAIN | CONVERTED:
        return "only Markdown, text, PDF, Word (.docx), Excel (.xlsx) and HTML files are read"
    if size == 0:
        return "the file is empty"
    if size > largest(name):
        return f"the file is larger than {largest(name) // 2**20} MiB"
    if suffix in CONVERTED and not _convertible(suffix):
        return f"a {suffix} file needs a package: pip install 'ragflow-chatbot[documents]'"
    return ""


@cache
def _convertible(suffix: str) -> bool:
    """Return whether the packages that read files of this kind are installed."""
    needed = ("markitdown", _PACKAGES.get(suffix, "bs4"))
    return all(find_spec(package) is not None for package in needed)


def list_folder(folder: Path) -> Listing:
    """List the documents below the folder, without opening one.

    Raises:
        OSError: The folder itself cannot be listed.
    """
    files: list[File] = []
    profiles: list[File] = []
    skipped: dict[str, str] = {}
    for name, found in _walk(folder, folder.resolve(strict=True), "", skipped):
        if name.count("/") <= 1 and name.rsplit("/", 1)[-1] == PROFILE:
            profiles.append(File(name, found.st_size, found.st_mtime_ns))
        elif problem := refusal(name, found.st_size):
            skipped[name] = problem
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
            if entry.is_symlink() and not inside(Path(entry.path), root):
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


def inside(path: Path, root: Path) -> bool:
    """Return whether the path, all links followed, lies below `root`, which has none.

    Raises:
        OSError: The path leads nowhere.
    """
    return Path(os.path.realpath(path, strict=True)).is_relative_to(root)
