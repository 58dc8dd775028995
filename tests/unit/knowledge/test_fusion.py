from hypothesis import given
from hypothesis import strategies as st

from chatbot.domain import Passage, Ranking
from chatbot.knowledge.fusion import distinct, fuse, merge


def passage(name: str, score: float = 0.5, *, text: str = "") -> Passage:
    return Passage(
        id=f"{name} {score}",
        text=text or name,
        document=f"{name}.md",
        document_id=name,
        assistant="A",
        score=score,
    )


def names(passages: list[Passage]) -> list[str]:
    return [each.document_id for each in passages]


def test_what_stands_high_in_both_comes_first() -> None:
    first = [passage("a"), passage("b"), passage("c")]
    second = [passage("b"), passage("d"), passage("a")]
    assert names(fuse([first, second], 9)) == ["b", "a", "d", "c"]


def test_scores_are_compared_where_they_were_measured_alike() -> None:
    first = Ranking(passages=[passage("a", 0.9), passage("b", 0.3)], yardstick=("x", 0.3))
    second = Ranking(passages=[passage("c", 0.5), passage("a", 0.2)], yardstick=("x", 0.3))
    other = Ranking(passages=[passage("d", 0.1), passage("b", 0.1)], yardstick=("y", 0.3))
    assert names(merge([first, second], 3)) == ["a", "c", "b"]
    assert names(merge([first, other], 9)) == ["b", "a", "d"]
    assert names(merge([first, second], 1)) == ["a"]
    assert merge([], 3) == []


def test_a_passage_keeps_its_highest_score() -> None:
    (fused,) = fuse([[passage("a", 0.2)], [passage("a", 0.9)], [passage("a", 0.4)]], 9)
    assert fused.score == 0.9


def test_equal_ranks_are_ordered_by_score() -> None:
    assert names(fuse([[passage("a", 0.1)], [passage("b", 0.9)]], 9)) == ["b", "a"]


def test_the_same_text_of_two_documents_stays_twice() -> None:
    assert len(distinct([passage("a", text="x"), passage("b", text="x")])) == 2


def test_white_space_makes_no_other_passage() -> None:
    assert len(distinct([passage("a", text="x  y"), passage("a", text="x\ny ")])) == 1


@given(st.lists(st.lists(st.sampled_from("abcdef"))), st.integers(0, 8))
def test_each_passage_comes_once_and_no_more_than_asked_for(
    rankings: list[list[str]], limit: int
) -> None:
    fused = names(fuse([[passage(name) for name in ranking] for ranking in rankings], limit))
    everything = {name for ranking in rankings for name in ranking}
    assert len(set(fused)) == len(fused) == min(limit, len(everything))
