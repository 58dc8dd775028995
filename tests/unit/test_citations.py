import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chatbot.citations import CitationFilter
from chatbot.domain import Passage
from chatbot.markers import MARKER_LENGTH

PASSAGES = [
    Passage(
        id=f"chunk {number}",
        text=f"Text {number}.",
        document=f"document {number}.md",
        document_id=f"id{number}",
        assistant="手册",
        score=number / 10,
        location=f"p. {number}",
        url=f"http://127.0.0.1/{number}",
    )
    for number in range(1, 6)
]


def shown(
    text: str, passages: int = 5, *, first: int = 1, size: int = 0
) -> tuple[str, list[int]]:
    checked = CitationFilter(PASSAGES[:passages], first=first)
    pieces = [text[at : at + size] for at in range(0, len(text), size)] if size else [text]
    answer = "".join(checked.feed(piece) for piece in pieces) + checked.finish()
    return answer, [citation.number for citation in checked.cited]


@pytest.mark.parametrize(
    ("text", "expected", "cited"),
    [
        pytest.param("15 days [1].", "15 days [1].", [1], id="one"),
        pytest.param("15 天[2]。", "15 天[2]。", [2], id="after a Chinese character"),
        pytest.param("days [1][3].", "days [1][3].", [1, 3], id="side by side"),
        pytest.param("days [3, 1].", "days [3][1].", [1, 3], id="list"),
        pytest.param("天 [1，2、3]", "天 [1][2][3]", [1, 2, 3], id="list with Chinese commas"),
        pytest.param("days [1; 2]", "days [1][2]", [1, 2], id="list with a semicolon"),
        pytest.param("days [2-4].", "days [2][3][4].", [2, 3, 4], id="range"),
        pytest.param("days [1, 3–5]", "days [1][3][4][5]", [1, 3, 4, 5], id="range in a list"),
        pytest.param("days [1, 1]", "days [1]", [1], id="number twice"),
        pytest.param("天【1】。", "天[1]。", [1], id="lenticular brackets"),
        pytest.param("days【2†source】", "days[2]", [2], id="dagger"),
        pytest.param("days [ID:1].", "days [1].", [1], id="ID"),
        pytest.param("days [id: 2]", "days [2]", [2], id="id with a blank"),
        pytest.param("天【ID：2】", "天[2]", [2], id="ID with a wide colon"),
        pytest.param("days [ID:1, ID:2]", "days [1][2]", [1, 2], id="IDs"),
        pytest.param("days [ID:1][ID:2]", "days [1][2]", [1, 2], id="IDs side by side"),
        pytest.param("days (ID: 1).", "days [1].", [1], id="ID in round brackets"),
        pytest.param("天（ID：1）。", "天[1]。", [1], id="ID in wide round brackets"),
        pytest.param("days ##1$$.", "days [1].", [1], id="hashes and dollars"),
        pytest.param("days [[1]].", "days [1].", [1], id="doubled brackets"),
        pytest.param("days [citation:1]", "days [1]", [1], id="citation"),
        pytest.param("天[来源1]", "天[1]", [1], id="Chinese label"),
        pytest.param("days [^1]", "days [1]", [1], id="footnote"),
        pytest.param("天［1，2］。", "天[1][2]。", [1, 2], id="wide square brackets"),
        pytest.param("days [١]", "days [1]", [1], id="Arabic-Indic digit"),
        pytest.param("X200[1], iPhone[2]", "X200[1], iPhone[2]", [1, 2], id="product names"),
        pytest.param("every 30 min[1]", "every 30 min[1]", [1], id="after a unit"),
        pytest.param("[1](见附件)", "[1](见附件)", [1], id="a remark follows"),
        pytest.param("Great![1]", "Great![1]", [1], id="after an exclamation mark"),
        pytest.param("> 天【1】 [2]", "> 天[1] [2]", [1, 2], id="block quote"),
        pytest.param(
            "> > days [ID:1]\n> [2, 3]",
            "> > days [1]\n> [2][3]",
            [1, 2, 3],
            id="nested block quotes",
        ),
    ],
)
def test_a_marker_is_shown_as_its_number(text: str, expected: str, cited: list[int]) -> None:
    assert shown(text) == (expected, cited)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("15 days [9].", "15 days.", id="before a full stop"),
        pytest.param("15 days [9] a year", "15 days a year", id="before a blank"),
        pytest.param("15 days [9]a year", "15 days a year", id="before a word"),
        pytest.param("15 天[9]。", "15 天。", id="Chinese"),
        pytest.param("months[9].", "months.", id="attached to a word"),
        pytest.param("days [8][9].", "days.", id="several side by side"),
        pytest.param("days [6-9].", "days.", id="range"),
        pytest.param("[9] 15 days", "15 days", id="at the beginning"),
        pytest.param("- [9] 15 days", "- 15 days", id="at the beginning of an item"),
        pytest.param("a\n[9] b", "a\nb", id="at the beginning of a line"),
        pytest.param("days [ID:77]", "days", id="ID"),
        pytest.param("days ##9$$", "days", id="hashes and dollars"),
        pytest.param("天（ID：9）", "天", id="ID in wide round brackets"),
        pytest.param("days [[9]]", "days", id="doubled brackets"),
        pytest.param("> they wrote [9]\n> and [8].", "> they wrote\n> and.", id="block quote"),
        pytest.param("> [9] 15 days", "> 15 days", id="at the beginning of a block quote"),
        pytest.param(">[9]。", ">。", id="right behind the mark of a block quote"),
    ],
)
def test_an_invented_number_disappears_with_its_blank(text: str, expected: str) -> None:
    assert shown(text) == (expected, [])


def test_an_invented_number_in_a_list_disappears_alone() -> None:
    assert shown("days [1, 9, 2].") == ("days [1][2].", [1, 2])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("In [2024] it was [100] percent.", id="years and large numbers"),
        pytest.param("- [x] done\n- [ ] open", id="check boxes"),
        pytest.param("in [0, 1] and at [01]", id="interval and leading zero"),
        pytest.param("from [10-20], or [3-1]", id="ranges of something else"),
        pytest.param("see [the handbook] and [a1]", id="words"),
        pytest.param("`values [9]` are", id="code span"),
        pytest.param("``a ` [9]`` end", id="code span with a backtick in it"),
        pytest.param("```python\nx [9]\n```", id="fenced code"),
        pytest.param("~~~~\nx [9]\n~~~\ny [9]\n~~~~", id="fenced code with tildes"),
        pytest.param("```\nx [9]", id="fenced code that is not closed"),
        pytest.param("[9](https://example.org/a)", id="link"),
        pytest.param("[[9]](https://example.org)", id="link with doubled brackets"),
        pytest.param("[9](/manual.pdf) [8](#top)", id="local links"),
        pytest.param("take arr[9], x[8] or my_list[7]", id="index"),
        pytest.param("call self.items[9] or myItems[8]", id="index of an attribute"),
        pytest.param("matrix[i][9]", id="second index"),
        pytest.param("then values[9] = 3", id="assignment"),
        pytest.param("then values[9].append(1)", id="method of an element"),
        pytest.param("x = [1, 2], y=[3]", id="list that is assigned"),
        pytest.param("> `values [9]` are", id="code span in a block quote"),
        pytest.param("> `values\n> [9]` are", id="code span on two lines of a block quote"),
        pytest.param("> ```\n> x [9]\n> ```", id="fenced code in a block quote"),
        pytest.param("> > ~~~\n> > > x [9]", id="fenced code in a block quote in another"),
        pytest.param("```\n> x [9]", id="fenced code with a line that looks quoted"),
        pytest.param("\\[9\\] and \\[8]", id="escaped"),
        pytest.param("## 1. Heading\n# 9", id="headings"),
        pytest.param("(I am) (9) ( ID )", id="round brackets"),
        pytest.param("open [9", id="never closed"),
        pytest.param("costs $$9$$ and #9", id="dollars"),
    ],
)
@pytest.mark.parametrize("passages", [0, 5])
def test_what_is_no_marker_stays(text: str, passages: int) -> None:
    assert shown(text, passages) == (text, [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("`a` b [1]", "`a` b [1]", id="behind a code span"),
        pytest.param("```\na\n```\nb [1]", "```\na\n```\nb [1]", id="behind fenced code"),
        pytest.param(
            "```a``` b [ID:1]", "```a``` b [1]", id="behind a span of three backticks"
        ),
        pytest.param("> a\nb [ID:1]", "> a\nb [1]", id="behind a quoted line"),
        pytest.param(
            "a ` b\n\nc [ID:1]", "a ` b\n\nc [1]", id="behind an open span's paragraph"
        ),
        pytest.param(
            "> ```\n> a\n> ```\n> b [ID:1]",
            "> ```\n> a\n> ```\n> b [1]",
            id="behind quoted code",
        ),
        pytest.param(
            "> ```\n> a\nb [ID:1]", "> ```\n> a\nb [1]", id="behind the block quote of code"
        ),
        pytest.param(
            "> ` a\n>\n> b [ID:1]", "> ` a\n>\n> b [1]", id="behind a quoted open span"
        ),
        pytest.param(
            "a ` b\n> c [ID:1]", "a ` b\n> c [1]", id="in a block quote behind an open span"
        ),
        pytest.param("\\` b [ID:1]", "\\` b [1]", id="behind an escaped backtick"),
        pytest.param("~~a~~ b [ID:1]", "~~a~~ b [1]", id="behind struck text"),
    ],
)
def test_prose_goes_on_behind_code_and_quotes(text: str, expected: str) -> None:
    assert shown(text) == (expected, [1])


def test_without_passages_no_marker_is_left() -> None:
    assert shown("Hello [1], 你好【2】 (ID: 0) [1-3].", 0) == ("Hello, 你好.", [])


def test_numbers_of_ragflow_assistants_begin_with_zero() -> None:
    assert shown("a [ID:0][ID:4] ##1$$ [ID:5]", first=0) == ("a [1][5] [2]", [1, 2, 5])


def test_a_citation_tells_all_about_its_passage() -> None:
    checked = CitationFilter(PASSAGES)
    checked.feed("b [2], a [1], b [2].")
    assert [citation.number for citation in checked.cited] == [1, 2]
    assert checked.cited[1].as_json() == {
        "number": 2,
        "document": "document 2.md",
        "document_id": "id2",
        "assistant": "手册",
        "text": "Text 2.",
        "score": 0.2,
        "location": "p. 2",
        "url": "http://127.0.0.1/2",
    }


@pytest.mark.parametrize(
    ("pieces", "outputs"),
    [
        pytest.param(["15 ", "days", " a"], ["15", " days", " a"], id="only a blank waits"),
        pytest.param(["天[", "1", "]", "。"], ["天", "", "", "[1]。"], id="a marker waits"),
        pytest.param(["[", "see", "]"], ["", "[see", "]"], id="a word in brackets goes on"),
        pytest.param(["[1]", "(", "h", "i)"], ["", "", "", "[1](hi)"], id="maybe a link"),
        pytest.param(["(I", "n"], ["", "(In"], id="maybe an ID"),
    ],
)
def test_text_is_held_back_no_longer_than_needed(pieces: list[str], outputs: list[str]) -> None:
    checked = CitationFilter(PASSAGES)
    assert [checked.feed(piece) for piece in pieces] == outputs


MARKUP = st.text(
    st.sampled_from("[]［］【】()（）ID: 1290,-–#$`~>\\ \n天aZ_.=^†/h"), max_size=60
)
OPENERS = set("[［【(（#")


@given(st.one_of(MARKUP, st.text()), st.data(), st.integers(0, 5))
@example("`" * 3 + "\n[1]\n" + "`" * 3, None, 5)
def test_the_split_into_pieces_makes_no_difference(
    text: str, data: st.DataObject | None, passages: int
) -> None:
    whole = shown(text, passages)
    sizes = data.draw(st.lists(st.integers(1, 9), min_size=1)) if data else [1]
    checked = CitationFilter(PASSAGES[:passages])
    answer, position = "", 0
    while position < len(text):
        size = sizes[position % len(sizes)]
        answer += checked.feed(text[position : position + size])
        position += size
    answer += checked.finish()
    assert (answer, [citation.number for citation in checked.cited]) == whole


@given(MARKUP, st.integers(0, 5))
@example("[9] a\n`b\n\n[9]` [1]", 5)
@example("```\n[9]\n> [9]\n```\n> ~~~\n[9]", 5)
def test_a_block_quote_is_checked_like_the_text_that_it_holds(text: str, passages: int) -> None:
    answer, cited = shown(text, passages)
    assert shown(_quoted(text), passages) == (_quoted(answer), cited)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.split("\n"))


@given(st.one_of(MARKUP, st.text()))
def test_little_is_ever_held_back(text: str) -> None:
    checked = CitationFilter(PASSAGES, first=10_000)  # no marker is valid, none disappears
    returned = 0
    for given_, character in enumerate(text, 1):
        returned += len(checked.feed(character))
        assert given_ - returned <= MARKER_LENGTH + 12
        if not set(text) & OPENERS:
            assert given_ - returned <= 1


@given(st.text().filter(lambda text: not set(text) & OPENERS))
def test_text_without_brackets_passes_unchanged(text: str) -> None:
    assert shown(text) == (text, [])
