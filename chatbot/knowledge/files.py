"""The files that are brought into a knowledge base."""

from collections.abc import Sequence
from pathlib import Path


def named(paths: Sequence[Path]) -> dict[str, Path]:
    """Return the files at and below the paths by the names that they get.

    Hidden files are left out. Files of the same name are told apart by the names of as many of
    their folders as needed. Reads the file system: call it in a thread.
    """
    files = sorted({file.resolve() for path in paths for file in _files(path)})
    names: dict[str, Path] = {}
    for file in files:
        same = [other for other in files if other.name == file.name]
        depth = 1
        while sum(other.parts[-depth:] == file.parts[-depth:] for other in same) > 1:
            depth += 1
        names[" - ".join(file.parts[-depth:])] = file
    return names


def _files(root: Path) -> Sequence[Path]:
    if not root.is_dir():
        return [root]
    return [
        path
        for path in root.rglob("*")
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(root).parts)
    ]
