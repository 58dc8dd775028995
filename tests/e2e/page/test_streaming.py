"""A fast answer: it grows without flicker, and nothing of the page moves or is made anew."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.e2e.page.conftest import Visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")

TEXT = (
    "## Leave\n\nEverybody has **25 days** of `leave` a year [1]. It is *one* piece.\n\n"
    "| Year | Days |\n| --- | ---: |\n| first | 10 |\n| second | 12 |\n\n"
    "1. Ask the team lead [1].\n2. Wait for the answer.\n\n"
    "```python\nfor day in leave:\n    print(day)\n```\n\nThat is all: 假期很长。"
)
PIECES = [TEXT[start : start + 2] for start in range(0, len(TEXT), 2)]
PER_SECOND = 100

WATCH = (Path(__file__).parent / "watch.js").read_text("utf-8")


async def _fast(_: str) -> AsyncIterator[str]:
    for piece in PIECES:
        yield piece
        await asyncio.sleep(1 / PER_SECOND)


async def test_fast_answer_grows_without_flicker(visitor: Visitor) -> None:
    visitor.service.model.script = _fast
    page = await visitor.visit()
    await page.evaluate(WATCH)
    await visitor.ask("leave?", wait=False)
    await page.locator(".prose").wait_for()
    top = await page.locator(".asked").bounding_box()
    await page.locator(".actions").wait_for()
    watched = await page.evaluate("window.watched")

    await expect(page.locator(".prose")).to_contain_text("That is all: 假期很长。")
    assert watched["marks"] == []
    assert watched["removed"] == []
    assert watched["shifts"] < 0.02
    assert await page.locator(".asked").bounding_box() == top


async def test_text_that_is_marked_stays_marked_while_the_answer_grows(
    visitor: Visitor,
) -> None:
    visitor.service.model.script = _fast
    page = await visitor.visit()
    await visitor.ask("leave?", wait=False)
    await expect(page.locator(".prose")).to_contain_text("Everybody has")
    await page.evaluate("getSelection().selectAllChildren(document.querySelector('.prose h4'))")
    await page.locator(".actions").wait_for()

    assert await page.evaluate("String(getSelection())") == "Leave"


async def test_long_answer_is_drawn_in_little_time(visitor: Visitor) -> None:
    async def long(_: str) -> AsyncIterator[str]:
        for number in range(150):
            yield f"{number}. A line with **bold** words, `code` and a citation [1].\n\n"
            await asyncio.sleep(0.002)

    visitor.service.model.script = long
    page = await visitor.visit()
    await page.evaluate(WATCH)
    drawn = await page.evaluate("window.timeOfFrame()")
    await visitor.ask("leave?")

    await expect(page.locator(".prose li")).to_have_count(150)
    assert drawn < 16, f"{drawn:.1f} ms for a frame"
