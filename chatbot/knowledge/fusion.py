"""Makes one ranking out of several."""

from collections.abc import Hashable, Iterable, Sequence

from chatbot.domain import Passage, Ranking

CONSTANT = 60  # dampens the first ranks, as in the original paper on reciprocal rank fusion


def fuse(rankings: Iterable[Sequence[Passage]], limit: int) -> list[Passage]:
    """Return the best passages of all rankings by their reciprocal ranks.

    A passage that stands high in several rankings comes first. For rankings whose scores cannot
    be compared: other queries, other embedding models. Each passage appears once, with its
    highest score.
    """
    merits: dict[tuple[str, str], float] = {}
    best: dict[tuple[str, str], Passage] = {}
    for ranking in rankings:
        for rank, passage in enumerate(distinct(ranking), 1):
            key = identity(passage)
            merits[key] = merits.get(key, 0.0) + 1 / (CONSTANT + rank)
            if key not in best or passage.score > best[key].score:
                best[key] = passage
    order = sorted(best, key=lambda key: (-merits[key], -best[key].score))
    return [best[key] for key in order[:limit]]


def merge(rankings: Iterable[Ranking], limit: int) -> list[Passage]:
    """Return the best passages: by score where scores can be compared, else by rank."""
    alike: dict[Hashable, list[Passage]] = {}
    for ranking in rankings:
        alike.setdefault(ranking.yardstick, []).extend(ranking.passages)
    for passages in alike.values():
        passages.sort(key=lambda passage: -passage.score)
    if len(alike) == 1:
        return distinct(*alike.values())[:limit]
    return fuse(alike.values(), limit)


def distinct(passages: Iterable[Passage]) -> list[Passage]:
    """Return the passages in their order, each once."""
    first: dict[tuple[str, str], Passage] = {}
    for passage in passages:
        first.setdefault(identity(passage), passage)
    return list(first.values())


def identity(passage: Passage) -> tuple[str, str]:
    """Return what makes two passages the same: the document and the text."""
    return passage.document_id, " ".join(passage.text.split())
