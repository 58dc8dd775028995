import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from serving.cli.markdown import rendered_lines, split_finished


def rendered(text: str, width: int = 40) -> str:
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    return "\n".join(line.plain for line in rendered_lines(text, console))


@pytest.mark.parametrize(
    ("text", "finished"),
    [
        pytest.param("one line", "", id="a single block"),
        pytest.param("one\n\ntwo", "one\n", id="two paragraphs"),
        pytest.param("- a\n- b\n\n- c", "", id="a list goes on"),
        pytest.param("- a\n\ntext", "- a\n", id="a list has ended"),
        pytest.param("```\na\n\nb", "", id="code goes on"),
        pytest.param("```\na\n```\nb", "```\na\n```", id="code has ended"),
        pytest.param("| a |\n|---|\n| 1 |", "", id="a table goes on"),
        pytest.param("text\n---", "", id="a line below makes a heading"),
        pytest.param("一\n\n二\n\n三", "一\n\n二\n", id="Chinese"),
    ],
)
def test_finished_blocks(text: str, finished: str) -> None:
    found, rest = split_finished(text)
    assert found == finished
    assert f"{found}\n{rest}" == text if found else rest == text


@given(st.text(st.sampled_from("ab \n#-*`|>1.[]")))
def test_no_text_is_lost_by_splitting(text: str) -> None:
    found, rest = split_finished(text)
    assert (f"{found}\n{rest}" if found or rest != text else rest) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("See [1] and [2].", "See [1] and [2].", id="citations"),
        pytest.param("<b>x</b> & <script>", "<b>x</b> & <script>", id="tags are shown"),
        pytest.param("<div>\nx\n</div>", "<div> x </div>", id="block of HTML is shown"),
        pytest.param("# Title", "Title", id="heading without a frame"),
        pytest.param("- a\n- b", " • a\n • b", id="list without blank lines around it"),
        pytest.param("```\nx  =  1\n```", " x  =  1", id="code"),
        pytest.param("[text](http://a/b)", "text (http://a/b)", id="link"),
        pytest.param("![图](http://a/b.png)", "图 (http://a/b.png)", id="image"),
        pytest.param("**bold** `code`", "bold code", id="marks are used"),
        pytest.param(
            "[red]not markup[/red] :smile:", "[red]not markup[/red] :smile:", id="rich"
        ),
    ],
)
def test_markdown_in_a_terminal(text: str, shown: str) -> None:
    assert rendered(text) == shown


def test_chinese_is_two_columns_wide() -> None:
    lines = rendered("瓦尔登湖位于美国马萨诸塞州康科德镇", width=10).splitlines()
    assert [len(line) for line in lines] == [5, 5, 5, 2]
