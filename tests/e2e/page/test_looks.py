"""Languages, themes, and what people who cannot see or point well need."""

import re
from pathlib import Path

import pytest
from playwright.async_api import Page, ViewportSize, expect

from tests.e2e.page.conftest import DESK, PHONE, Guest, Visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")

CONTRAST = (Path(__file__).parent / "contrast.js").read_text("utf-8")
ACCESSIBLE = (Path(__file__).parent / "accessible.js").read_text("utf-8")
NARROW = ViewportSize(width=320, height=640)


@pytest.mark.parametrize(
    ("language", "words"),
    [
        pytest.param("zh-CN", "想了解什么？", id="Chinese"),
        pytest.param("zh-TW", "想了解什么？", id="Chinese of Taiwan"),
        pytest.param("en-GB", "What would you like to know?", id="English"),
        pytest.param("fr-FR", "What would you like to know?", id="a language we do not speak"),
    ],
)
async def test_page_speaks_the_language_of_the_browser(
    visitor: Visitor, language: str, words: str
) -> None:
    page = await visitor.visit(language=language)

    await expect(page.get_by_role("heading", name=words)).to_be_visible()
    spoken = "zh-CN" if language.startswith("zh") else "en"
    await expect(page.locator("html")).to_have_attribute("lang", spoken)


async def test_language_is_changed_during_a_conversation_and_remembered(
    visitor: Visitor,
) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    await page.get_by_role("button", name="切换到中文").click()

    await expect(page.locator(".way")).to_contain_text("已检索：Handbook")
    await expect(page.get_by_role("button", name="复制")).to_be_visible()
    await expect(page.get_by_role("textbox", name="您的问题")).to_be_visible()
    await page.reload()
    await expect(page.locator(".way")).to_contain_text("已检索：Handbook")


async def test_theme_follows_the_system_until_somebody_chooses(visitor: Visitor) -> None:
    page = await visitor.visit(dark=True)
    dark = await _background(page)
    await page.get_by_role("button", name="Use the light theme").click()
    light = await _background(page)
    await page.reload()

    assert dark != light
    assert await _background(page) == light
    await expect(page.get_by_role("button", name="Use the dark theme")).to_be_visible()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_text_has_enough_contrast(visitor: Visitor, *, dark: bool) -> None:
    visitor.service.knowledge.down = "RAGFlow cannot be reached."
    page = await visitor.visit(dark=dark)
    weak = await page.evaluate(CONTRAST)
    await visitor.ask("what is known?")
    visitor.service.knowledge.down = ""
    await visitor.ask("leave?")
    await page.get_by_role("button", name="Why this answer").last.click()
    await page.locator(".why .times").wait_for()
    await page.locator(".source").click()
    weak += await page.evaluate(CONTRAST)

    assert weak == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_what_opens_has_enough_contrast(guest: Guest, *, dark: bool) -> None:
    page = await guest.visit(f"/?session=contrast-{dark}", dark=dark)
    await guest.ask("How many days of leave a year?")
    await page.get_by_role("button", name="Good answer").click()
    await page.locator(".comment textarea").wait_for()
    await page.get_by_role("searchbox").fill("leave a year")
    await page.locator(".match mark").first.wait_for()
    weak = await page.evaluate(CONTRAST)
    await page.get_by_role("searchbox").fill("")
    await page.locator(".session").first.hover()
    await page.locator(".session .more").first.click()
    await page.locator(".menu").wait_for()
    weak += await page.evaluate(CONTRAST)
    await page.locator(".menu").get_by_text("Rename").click()
    await page.get_by_role("dialog").wait_for()
    weak += await page.evaluate(CONTRAST)

    assert weak == []


@pytest.mark.parametrize("size", [DESK, PHONE, NARROW], ids=["desk", "phone", "narrow"])
async def test_nobody_stumbles(guest: Guest, size: ViewportSize) -> None:
    page = await guest.visit(f"/?session=stumble-{size['width']}", size=size)
    stumbled = await page.evaluate(ACCESSIBLE)
    await guest.ask("How many days of leave a year?")
    await page.get_by_role("button", name="Bad answer").last.click()
    await page.get_by_role("button", name="Why this answer").last.click()
    await page.locator(".why .times").last.wait_for()
    await page.locator(".why summary").last.click()
    stumbled += await page.evaluate(ACCESSIBLE)
    if size is not DESK:
        await page.get_by_role("button", name="Show conversations").click()
        stumbled += await page.evaluate(ACCESSIBLE)

    assert stumbled == []


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
async def test_only_the_conversation_scrolls(visitor: Visitor, size: ViewportSize) -> None:
    page = await visitor.visit(size=size)
    for number in range(4):
        await visitor.ask(f"leave {number}?")
    await page.locator(".asked").first.evaluate("(asked) => asked.scrollIntoView()")

    frame = (
        "({scrollTop, scrollHeight, clientHeight}) => [scrollTop, scrollHeight - clientHeight]"
    )
    assert await page.locator("html").evaluate(frame) == [0, 0]
    await expect(page.locator(".bar")).to_be_in_viewport(ratio=1)


async def test_what_has_the_keyboard_is_seen(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    unseen = []
    for _ in range(24):
        await page.keyboard.press("Tab")
        outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        if outline == "none":
            unseen.append(await page.evaluate("document.activeElement.localName"))

    # Around the composer there is a line instead.
    assert set(unseen) <= {"textarea", "body"}


async def test_every_control_has_a_name(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    await page.locator(".source").click()
    tree = await page.locator("body").aria_snapshot()

    nameless = re.findall(r"- (?:button|link|textbox|checkbox|dialog)(?! \")[^\n]*", tree)
    assert nameless == []
    for landmark in ("main", "complementary", "banner", "navigation", "article"):
        assert landmark in tree


async def test_answer_is_read_to_those_who_cannot_see(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")

    status = page.get_by_role("status")
    await expect(status).to_have_text("Answer: 25 days of leave 1.")
    await expect(status).to_have_attribute("aria-live", "polite")


async def _background(page: Page) -> str:
    colour = "getComputedStyle(document.body).backgroundColor"
    return str(await page.evaluate(colour))
