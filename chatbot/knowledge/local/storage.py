"""Saves an index below the data folder and opens it again.

An index lies in a folder named after its contents and appears there in one step, so two
processes that make the same one at once do not disturb each other.
"""

import json
import mmap
import os
import shutil
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray

from chatbot.knowledge.local.index import VERSION, Document, Index
from chatbot.knowledge.local.matrix import Matrix
from chatbot.knowledge.local.vocabulary import Vocabulary

_log = structlog.get_logger(__name__)

_KEPT = 2  # the current index, and the one before, which another process may still read
_ABANDONED_SECONDS = 3600.0
_UNFINISHED = "unfinished-"


class Storage:
    """The saved indexes of one folder of documents. Without a data folder nothing is saved."""

    def __init__(self, data_dir: Path | None, folder: Path) -> None:
        key = sha256(os.fsencode(folder)).hexdigest()[:16]
        self._writes = data_dir is not None
        data_dir = Path(os.devnull) if data_dir is None else data_dir  # nothing is below it
        self._place = data_dir / "knowledge-index" / key
        self._conversions = data_dir / "knowledge-text" / key

    def open(self) -> Index | None:
        """Return the newest saved index, or nothing if there is no usable one."""
        for path in self._saved():
            try:
                return _load(path)
            except (OSError, EOFError, ValueError, LookupError, TypeError) as error:
                _log.info("knowledge index is made anew", path=str(path), reason=str(error))
                shutil.rmtree(path, ignore_errors=True)
        return None

    def save(self, index: Index, *, complete: bool = True) -> None:
        """Save the index. Where the disk cannot be written it stays in memory only.

        What was converted for documents that are not in it is removed, if it is `complete`.
        """
        if not self._writes:
            return
        target = self._place / index.fingerprint()
        try:
            self._place.mkdir(parents=True, exist_ok=True, mode=0o700)
            if target.is_dir():
                _write_manifest(target, index)
                os.utime(target)
            else:
                self._write(target, index)
            self._clean(target)
            if complete:
                self._forget_conversions({each.digest for each in index.documents})
        except OSError as error:
            _log.warning("knowledge index kept in memory only", error=str(error))

    def conversion(self, digest: str) -> Sequence[str] | None:
        """Return the pages of a file that was converted before, by the hash of the file."""
        try:
            pages = json.loads((self._conversions / f"{digest}.json").read_text("utf-8"))
        except (OSError, ValueError):
            return None
        return pages if isinstance(pages, list) else None

    def keep_conversion(self, digest: str, pages: Sequence[str]) -> None:
        """Keep the pages of a file, so that it need not be converted again."""
        if not self._writes:
            return
        try:
            self._conversions.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = self._conversions / f"{digest}.{os.getpid()}"
            fresh.write_text(json.dumps(pages), encoding="utf-8")
            fresh.replace(self._conversions / f"{digest}.json")
        except OSError as error:
            _log.warning("converted text not kept", error=str(error))

    def _write(self, target: Path, index: Index) -> None:
        unfinished = Path(mkdtemp(prefix=_UNFINISHED, dir=self._place))
        try:
            _dump(unfinished, index)
            unfinished.rename(target)
        except OSError:
            shutil.rmtree(unfinished, ignore_errors=True)
            if not target.is_dir():  # else another process was faster
                raise

    def _saved(self) -> list[Path]:
        try:
            found = [
                (path.stat().st_mtime, path)
                for path in self._place.iterdir()
                if not path.name.startswith(_UNFINISHED)
            ]
        except OSError:
            return []
        return [path for _, path in sorted(found, reverse=True)]

    def _clean(self, current: Path) -> None:
        others = [path for path in self._saved() if path != current]
        for path in others[_KEPT - 1 :]:
            shutil.rmtree(path, ignore_errors=True)
        for path in self._place.glob(f"{_UNFINISHED}*"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                    shutil.rmtree(path, ignore_errors=True)

    def _forget_conversions(self, current: Collection[str]) -> None:
        """Remove the texts of files that are not there any more."""
        for path in self._conversions.glob("*"):
            if path.name.partition(".")[0] not in current:
                path.unlink(missing_ok=True)


def _dump(path: Path, index: Index) -> None:
    (path / "passages.bin").write_bytes(index.passages)
    for name, array in _arrays(index).items():
        np.save(path / f"{name}.npy", array)
    _write_manifest(path, index)


def _arrays(index: Index) -> dict[str, NDArray[Any]]:
    return {
        "offsets": index.offsets,
        "words": index.words,
        "word_starts": index.word_starts,
        "parts": index.parts,
        "part_starts": index.part_starts,
        "chinese": index.chinese,
        "keys": index.keys,
        "vocabulary_hashes": index.vocabulary.hashes,
        "vocabulary_numbers": index.vocabulary.numbers,
        "matrix_starts": index.matrix.starts,
        "matrix_passages": index.matrix.passages,
        "matrix_scores": index.matrix.scores,
    }


def _write_manifest(path: Path, index: Index) -> None:
    fresh = path / f"manifest.{os.getpid()}"
    fresh.write_text(json.dumps(index.manifest()), encoding="utf-8")
    fresh.replace(path / "manifest.json")


def _load(path: Path) -> Index:
    manifest = json.loads((path / "manifest.json").read_text("utf-8"))
    if manifest["version"] != VERSION:
        message = "made by another version"
        raise ValueError(message)

    def array(name: str) -> NDArray[Any]:
        mapped = np.load(path / f"{name}.npy", mmap_mode="r")
        return np.asarray(mapped)  # a plain array over the same file, which is faster to cut

    index = Index(
        documents=tuple(Document(**each) for each in manifest["documents"]),
        passages=_mapped(path / "passages.bin"),
        offsets=array("offsets"),
        words=array("words"),
        word_starts=array("word_starts"),
        parts=array("parts"),
        part_starts=array("part_starts"),
        chinese=array("chinese"),
        keys=array("keys"),
        vocabulary=Vocabulary(array("vocabulary_hashes"), array("vocabulary_numbers")),
        matrix=Matrix(array("matrix_starts"), array("matrix_passages"), array("matrix_scores")),
    )
    if not _consistent(index) or index.fingerprint() != path.name:
        message = "its parts do not belong together"
        raise ValueError(message)
    return index


def _consistent(index: Index) -> bool:
    matrix = index.matrix
    return bool(
        index.offsets[-1] == len(index.passages)
        and len(index.word_starts) == len(index.offsets)
        and index.word_starts[-1] == len(index.words)
        and len(index.part_starts) == len(index.offsets)
        and index.part_starts[-1] == len(index.parts)
        and len(index.chinese) == len(index.keys) == index.size
        and len(index.vocabulary.numbers) == index.vocabulary.size
        and len(matrix.starts) == index.vocabulary.size + 1
        and matrix.starts[-1] == len(matrix.passages) == len(matrix.scores)
        and (not index.documents or index.documents[-1].stop == index.size)
    )


def _mapped(path: Path) -> memoryview:
    with path.open("rb") as opened:
        if not path.stat().st_size:
            return memoryview(b"")
        return memoryview(mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ))
