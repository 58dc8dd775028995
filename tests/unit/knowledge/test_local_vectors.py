"""Vectors on disk: found by the hash of their passage, joined, renewed, damaged."""

from pathlib import Path

import numpy as np
import pytest

from chatbot.knowledge.local.embedding import Vectors
from chatbot.knowledge.local.vectors import VectorStore
from chatbot.knowledge.local.vocabulary import Hashes


def similarities(store: VectorStore, wanted: Hashes, query: Vectors) -> list[float]:
    found = store.similarities(wanted, query)
    assert found is not None
    return [float(each) for each in found]


def keys(*values: int) -> Hashes:
    return np.array(values, dtype=np.uint64)


def rows(*values: tuple[float, float]) -> Vectors:
    return np.array(values, dtype=np.float32)


EAST, NORTH = (1.0, 0.0), (0.0, 1.0)


def test_passages_have_the_similarity_of_their_vectors(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    store.add(keys(30, 10), rows(EAST, NORTH))
    store.add(keys(20), rows((0.6, 0.8)))

    found = similarities(store, keys(10, 20, 30, 40, 10), rows(EAST)[0])

    assert found == pytest.approx([0, 0.6, 1, 0, 0])


def test_what_is_missing_is_told_once(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    assert store.missing(keys(7, 8, 7)).tolist() == [0, 1]
    store.add(keys(8), rows(EAST))
    assert store.missing(keys(9, 8, 7, 9)).tolist() == [0, 2]
    assert store.missing(keys()).tolist() == []


def test_they_are_there_again_after_a_restart(tmp_path: Path) -> None:
    VectorStore(tmp_path).add(keys(1, 2), rows(EAST, NORTH))
    (tmp_path / "9.keys.npy").write_bytes(b"broken")
    (tmp_path / "8.vectors.npy").write_bytes(b"alone")

    store = VectorStore(tmp_path)
    store.load()

    assert store.missing(keys(1, 2, 3)).tolist() == [2]
    assert similarities(store, keys(2), rows(NORTH)[0]) == [1]


def test_many_files_become_one_and_unused_vectors_go(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    for key in range(12):
        store.add(keys(key), rows((key / 100, 0)))
    wanted = keys(11, 3, 99)

    store.tidy(wanted)

    assert len(list(tmp_path.glob("*.keys.npy"))) == len(list(tmp_path.glob("*"))) / 2 == 1
    again = VectorStore(tmp_path)
    again.load()
    for each in (store, again):
        assert similarities(each, wanted, rows(EAST)[0]) == pytest.approx([0.11, 0.03, 0])
        assert each.missing(keys(3, 5, 11)).tolist() == [1]


def test_few_files_stay_as_they_are(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    store.add(keys(1, 2), rows(EAST, NORTH))
    before = sorted(tmp_path.iterdir())

    store.tidy(keys(1, 2, 3))
    assert sorted(tmp_path.iterdir()) == before

    store.tidy(keys(3))
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_folder_costs_only_the_saved_vectors(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file where a folder should be")
    store = VectorStore(tmp_path / "file")

    store.add(keys(1), rows(EAST))

    assert similarities(store, keys(1), rows(EAST)[0]) == [1]


def test_vectors_of_another_size_are_removed(tmp_path: Path) -> None:
    store = VectorStore(tmp_path)
    store.add(keys(1), rows(EAST))

    assert store.similarities(keys(1), np.ones(3, dtype=np.float32)) is None

    assert store.missing(keys(1)).tolist() == [0]
    assert list(tmp_path.iterdir()) == []
