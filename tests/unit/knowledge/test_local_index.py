"""The index: words by their hashes, and what it tells about a passage without its text."""

from hypothesis import given
from hypothesis import strategies as st

from chatbot.knowledge.local.building import Builder
from chatbot.knowledge.local.cutting import Piece
from chatbot.knowledge.local.index import Document, Index
from chatbot.knowledge.local.vocabulary import Vocabulary, hash_of
from chatbot.relevance import analysis
from chatbot.text import tokens

PIECES = [
    Piece("Pump › Oil", "The pump is oiled every 400 hours. Use oil of type E-21."),
    Piece("水泵 › 检修", "水泵每年检修一次。检修前先关闭电源，再打开盖板！"),
    Piece("", "| a | b |\n| --- | --- |\n| 1 | 2 |"),
]


def built(pieces: list[Piece], earlier: Index | None = None, name: str = "a/x.md") -> Index:
    builder = Builder(earlier)
    if earlier:
        builder.keep(earlier.documents[0])
    builder.add(Document(name, 1, 1, digest=name), "", pieces)
    return builder.build()


def test_it_tells_of_a_passage_what_its_text_tells() -> None:
    index = built(PIECES)
    for number, piece in enumerate(PIECES):
        expected = analysis(piece.text, f"x\n{piece.location}")
        numbers = index.vocabulary.find(expected.everything)
        wanted = {number: word for word, number in numbers.items()}

        assert index.analysis(number, wanted) == expected
        assert index.piece(number) == piece
    assert index.chinese.tolist() == [False, True, False]


def test_only_wanted_words_are_told() -> None:
    index = built(PIECES)
    numbers = index.vocabulary.find(["pump", "oil", "missing"])

    found = index.analysis(0, {number: word for word, number in numbers.items()})

    assert set(numbers) == {"pump", "oil"}
    assert found.heading == {"pump", "oil"}
    assert [set(each) for each in found.sentences] == [{"pump", "oil"}, {"oil"}]


def test_what_is_kept_is_as_it_was_and_new_words_get_new_numbers() -> None:
    first = built(PIECES)

    second = built([Piece("", "A duck swims, the pump rests.")], first, "a/y.md")

    assert second.size == len(PIECES) + 1
    assert [second.piece(number) for number in range(3)] == PIECES
    assert second.keys[:3].tolist() == first.keys.tolist()
    words = tokens(PIECES[1].text)
    assert second.vocabulary.find(words) == first.vocabulary.find(words)
    assert second.vocabulary.find(["duck"])["duck"] >= first.vocabulary.size


@given(st.sets(st.text(max_size=8), max_size=60), st.sets(st.text(max_size=8), max_size=20))
def test_every_word_is_found_and_no_other(known: set[str], others: set[str]) -> None:
    numbers = {hash_of(word): at for at, word in enumerate(sorted(known))}

    vocabulary = Vocabulary.of(numbers)

    assert vocabulary.find(known) == {word: numbers[hash_of(word)] for word in known}
    assert set(vocabulary.find(others)) == known & others
    assert vocabulary.as_dict() == numbers
