"""The page's own Markdown while its text grows, and texts of every kind."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.async_api import Page

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.parametrize(
    ("text", "never"),
    [
        pytest.param("one **two** three", "*", id="bold"),
        pytest.param("one *two* three", "*", id="stress"),
        pytest.param("one `two` three", "`", id="code"),
        pytest.param("see [there](https://x.org/a) now", "(", id="link"),
        pytest.param("one [1]. two", "[", id="citation"),
        pytest.param("one\n\n## two\n\nthree", "#", id="heading"),
        pytest.param("one\n\n- two\n- three", "-", id="list"),
        pytest.param("one\n\n| a | b |\n|---|---|\n| 1 | 2 |", "|", id="table"),
        pytest.param("one\n\n```py\ntwo\n```\n\nthree", "`", id="code block"),
        pytest.param("one\n\n> two", ">", id="quotation"),
    ],
)
async def test_marks_never_flash_while_the_text_grows(
    reader: Page, text: str, never: str
) -> None:
    steps = list(range(1, len(text) + 1))
    grown = await reader.evaluate("([text, steps]) => grown(text, steps)", [text, steps])

    assert [seen for seen in grown["seen"] if never in seen] == []
    assert grown["html"] == await reader.evaluate("whole", text)


async def test_what_is_complete_stays_the_same_element(reader: Page) -> None:
    same = await reader.evaluate("""async () => {
      const view = new MarkdownView({ chip: () => null });
      view.show("one\\n\\n- two\\n- three", { open: true });
      const [paragraph, list] = view.root.children;
      const item = list.firstChild;
      view.show("one\\n\\n- two\\n- three and **more**\\n\\nfour", { open: true });
      return [
        view.root.children[0] === paragraph,
        view.root.children[1] === list,
        list.firstChild === item,
        list.textContent,
      ];
    }""")

    assert same == [True, True, True, "twothree and more"]


@pytest.mark.parametrize(
    "piece",
    [
        "*",
        "**",
        "_",
        "`",
        "[",
        "![",
        "](",
        "> ",
        "- ",
        "|",
        "$",
        "\\(",
        "<",
        "#",
        "```\n",
        "- a\n  ",
        "**a ",
        "[a](",
        "*a* ",
        "| a |\n",
        "~~",
        "https://",
        "[1]",
        "1. ",
        "\n\n",
        "a_b",
        "$$",
    ],
)
async def test_long_rows_of_marks_are_read_in_time(reader: Page, piece: str) -> None:
    text = (piece * 20_000)[:20_000]
    took = await reader.evaluate(
        "(text) => { const t = performance.now(); whole(text); return performance.now() - t; }",
        text,
    )

    assert took < 3_000


MARKDOWN = st.lists(
    st.sampled_from(
        [
            "**",
            "*",
            "_",
            "`",
            "```",
            "\n",
            "\n\n",
            "- ",
            "1. ",
            "> ",
            "# ",
            "|",
            "|-|",
            "[",
            "](",
            ")",
            "[1]",
            "https://x.org",
            "$",
            "$$",
            "\\",
            "<b>",
            "a",
            "b c",
            "年假",
            "。",
            " ",
            "    ",
            "~~",
            "🙂",
        ]
    ),
    max_size=40,
).map("".join)


def _examples() -> list[str]:
    """Collect what hypothesis makes: one call of the browser takes all of it."""
    texts: list[str] = []

    @settings(max_examples=300, database=None, deadline=None)
    @given(MARKDOWN)
    def collect(text: str) -> None:
        texts.append(text)

    collect()
    return texts


async def test_texts_of_every_kind_are_the_same_in_pieces_and_whole(reader: Page) -> None:
    differing = await reader.evaluate(
        """(texts) => texts.filter((text) => {
          const steps = Array.from({ length: text.length }, (_, index) => index + 1);
          return grown(text, steps).html !== whole(text);
        })""",
        _examples(),
    )

    assert differing == []


async def test_every_word_of_a_text_is_shown(reader: Page) -> None:
    """Whatever marks stand around them: words may be marked, never lost."""
    texts = [text.replace("a", "word ") for text in _examples()]
    shown = await reader.evaluate(
        """(texts) => texts.map((text) => {
          return whole(text).split("word").length - 1;
        })""",
        texts,
    )

    lost = [t for t, n in zip(texts, shown, strict=True) if n < t.count("word")]
    assert lost == []
