import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.cli.words import in_one_line, plain

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("\x1b[2J\x1b]0;title\x07hi", "[2J]0;titlehi", id="terminal codes"),
        pytest.param("a\x9b31mb", "a31mb", id="terminal code in one character"),
        pytest.param("one\r\ntwo\tthree\n", "one\ntwo\tthree\n", id="lines and tabs stay"),
        pytest.param("hidden\rshown", "hiddenshown", id="carriage return"),
        pytest.param("invoice\u202efdp.exe", "invoicefdp.exe", id="change of direction"),
        pytest.param("half \ud83d", "half ", id="lone surrogate"),
        pytest.param("瓦尔登湖 👩‍👩‍👧", "瓦尔登湖 👩‍👩‍👧", id="Chinese and emoji stay"),
        pytest.param("{x} [b] %s", "{x} [b] %s", id="markup stays as it is"),
    ],
)
def test_text_for_a_terminal(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        pytest.param(" a\n b\tc ", None, "a b c", id="white space"),
        pytest.param("abcdef", 4, "abc…", id="too long"),
        pytest.param("abcd", 4, "abcd", id="as long as may be"),
        pytest.param("瓦尔登湖", 8, "瓦尔登湖", id="Chinese, two columns each"),
        pytest.param("瓦尔登湖畔", 8, "瓦尔登…", id="Chinese, too long"),
    ],
)
def test_text_in_one_line(text: str, width: int | None, shown: str) -> None:
    assert in_one_line(text, width) == shown


@given(ANY_TEXT)
def test_no_text_steers_a_terminal(text: str) -> None:
    shown = plain(text)
    assert all(
        character in "\n\t" or character.isprintable() or ord(character) > 0x9F
        for character in shown
    )
    shown.encode()
    assert "\n" not in in_one_line(text)
