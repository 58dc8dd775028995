"""The page's own Markdown, read in the browser."""

import pytest
from playwright.async_api import Page

pytestmark = pytest.mark.asyncio(loop_scope="session")

LINK = 'target="_blank" rel="noopener noreferrer nofollow"'


@pytest.mark.parametrize(
    ("text", "html"),
    [
        pytest.param("a\nb\n\nc", "<p>a<br>b</p><p>c</p>", id="paragraphs and breaks"),
        pytest.param("# A\n\n#### B ##", "<h3>A</h3><h5>B</h5>", id="headings"),
        pytest.param("#no heading", "<p>#no heading</p>", id="number sign alone"),
        pytest.param(
            "**a** *b* ~~c~~ ***d***",
            "<p><strong>a</strong> <em>b</em> <s>c</s> <strong><em>d</em></strong></p>",
            id="marks",
        ),
        pytest.param(
            "**a *b* c** *a **b** c*",
            "<p><strong>a <em>b</em> c</strong> <em>a <strong>b</strong> c</em></p>",
            id="marks in marks",
        ),
        pytest.param(
            "请看**重点**内容",
            "<p>请看<strong>重点</strong>内容</p>",
            id="marks between Chinese words",
        ),
        pytest.param(
            "2 * 3 * 4 and snake_case_name",
            "<p>2 * 3 * 4 and snake_case_name</p>",
            id="no marks",
        ),
        pytest.param(r"\*a\* \[1\]", "<p>*a* [1]</p>", id="escapes"),
        pytest.param("`a*b*` ``c`d``", "<p><code>a*b*</code> <code>c`d</code></p>", id="code"),
        pytest.param(
            "- a\n- b\n  - c\n\n    d",
            "<ul><li>a</li><li>b<ul><li>c<p>d</p></li></ul></li></ul>",
            id="lists in lists",
        ),
        pytest.param(
            "- [x] a\n- [ ] b\n- [1] c\n- [x](https://x.org)",
            '<ul><li class="task"><input type="checkbox" disabled="" checked="" '
            'data-label="taskDone" data-values="{}" aria-label="done">a</li>'
            '<li class="task"><input type="checkbox" disabled="" '
            'data-label="taskOpen" data-values="{}" aria-label="open">b</li>'
            '<li><span class="together"><b>1</b></span> c</li>'
            f'<li><a href="https://x.org" {LINK}>x</a></li></ul>',
            id="task list",
        ),
        pytest.param(
            "3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>', id="numbered list"
        ),
        pytest.param("1、甲\n2、乙", "<ol><li>甲</li><li>乙</li></ol>", id="Chinese numbering"),
        pytest.param(
            "text\n- a", "<p>text</p><ul><li>a</li></ul>", id="list right behind text"
        ),
        pytest.param(
            "> a\n> - b\n\nc",
            "<blockquote><p>a</p><ul><li>b</li></ul></blockquote><p>c</p>",
            id="quotation",
        ),
        pytest.param(
            "> ```\n> a\nb [1]",
            '<blockquote><div class="code"><header><span>text</span></header>'
            '<pre tabindex="0"><code>a</code></pre></div></blockquote>'
            '<p><span class="together">b <b>1</b></span></p>',
            id="code ends with its quotation",
        ),
        pytest.param(
            "```py a b\nc\n```",
            '<div class="code"><header><span>py a b</span></header>'
            '<pre tabindex="0"><code>c</code></pre></div>',
            id="all that is said of code",
        ),
        pytest.param("a\n\n---\nb", "<p>a</p><hr><p>b</p>", id="rule"),
        pytest.param(
            "```py\n*a*\n```\nb",
            '<div class="code"><header><span>py</span></header>'
            '<pre tabindex="0"><code>*a*</code></pre></div><p>b</p>',
            id="code block",
        ),
        pytest.param(
            "~~~\n```\n~~~",
            '<div class="code"><header><span>text</span></header>'
            '<pre tabindex="0"><code>```</code></pre></div>',
            id="fence in a fence",
        ),
        pytest.param(
            "|a|b|\n|--|-:|\n|1|`x\\|y`|\n|2|",
            '<div class="table" tabindex="0"><table><thead><tr><th>a</th>'
            '<th data-align="right">b</th></tr></thead>'
            '<tbody><tr><td>1</td><td data-align="right"><code>x|y</code></td></tr>'
            '<tr><td>2</td><td data-align="right"></td></tr></tbody></table></div>',
            id="table",
        ),
        pytest.param("a | b", "<p>a | b</p>", id="bar alone"),
        pytest.param(
            "$$\na^2\n$$\n\\(x_1\\) $y_2$ costs $5 and $6",
            '<pre class="formula">a^2</pre><p><span class="formula">x_1</span> '
            '<span class="formula">y_2</span> costs $5 and $6</p>',
            id="formulas",
        ),
        pytest.param(
            "[a](https://x.org/b_(c))",
            f'<p><a href="https://x.org/b_(c)" {LINK}>a</a></p>',
            id="link",
        ),
        pytest.param(
            "见https://x.org/a。好",
            f'<p>见<a href="https://x.org/a" {LINK}>https://x.org/a</a>。好</p>',
            id="bare address between Chinese",
        ),
        pytest.param(
            "(https://x.org/a).",
            f'<p>(<a href="https://x.org/a" {LINK}>https://x.org/a</a>).</p>',
            id="bare address in brackets",
        ),
        pytest.param(
            "<mailto:a@x.org>",
            f'<p><a href="mailto:a@x.org" {LINK}>mailto:a@x.org</a></p>',
            id="address in angles",
        ),
        pytest.param(
            "![a](https://x.org/i.png)",
            f'<p><a href="https://x.org/i.png" {LINK}>a</a></p>',
            id="image is a link",
        ),
        pytest.param(
            "[a](javascript:alert(1)) [b](data:text/html,x) [c](//x.org) [d](/api)",
            "<p>a b c d</p>",
            id="addresses that are not opened",
        ),
        pytest.param(
            "[a]( java\u0001script:alert(1)) [b](JAVASCRIPT:x)",
            "<p>a b</p>",
            id="hidden schemes",
        ),
        pytest.param(
            "<b onclick=x>a</b><script>b</script>",
            "<p>&lt;b onclick=x&gt;a&lt;/b&gt;&lt;script&gt;b&lt;/script&gt;</p>",
            id="HTML is text",
        ),
        pytest.param(
            "&lt;b&gt; &amp;", "<p>&amp;lt;b&amp;gt; &amp;amp;</p>", id="entities are text"
        ),
        pytest.param(
            "year [1]. More",
            '<p><span class="together">year <b>1</b>.</span> More</p>',
            id="citation stays with its word",
        ),
        pytest.param(
            "年假[1][2]。",
            '<p>年<span class="together">假<b>1</b><b>2</b>。</span></p>',
            id="citations behind Chinese",
        ),
        pytest.param(
            "`a[1]` [1](https://x.org)",
            f'<p><code>a[1]</code> <a href="https://x.org" {LINK}>1</a></p>',
            id="no citation in code or link",
        ),
        pytest.param("", "", id="nothing"),
        pytest.param("**a", "<p>**a</p>", id="mark that is never closed"),
    ],
)
async def test_markdown_becomes(reader: Page, text: str, html: str) -> None:
    assert await reader.evaluate("whole", text) == html
