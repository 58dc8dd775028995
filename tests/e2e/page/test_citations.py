"""Numbers in the text, the card with the passage, the list of sources."""

from dataclasses import replace

import pytest
from playwright.async_api import expect

from tests.e2e.page.conftest import PHONE, Visitor
from tests.integration.http.ports import says
from tests.integration.http.service import PASSAGE

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_pointing_at_a_number_shows_its_passage(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    await page.locator(".chip").hover()

    card = page.get_by_role("dialog", name="Source 1: leave.md")
    await expect(card).to_contain_text("Everybody has 25 days of leave a year.")
    await expect(card).to_contain_text("Handbook · Leave › Annual leave")
    await expect(card).to_contain_text("Relevance 87 %")
    await card.hover()
    await expect(card).to_be_visible()
    await page.get_by_role("textbox").hover()
    await expect(card).to_have_count(0)


async def test_number_opens_and_closes_by_keyboard(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    await page.locator(".chip").focus()
    await page.keyboard.press("Enter")
    card = page.get_by_role("dialog")
    await expect(card).to_be_focused()
    await page.keyboard.press("Escape")

    await expect(card).to_have_count(0)
    await expect(page.locator(".chip")).to_be_focused()


async def test_source_in_the_list_opens_the_same_card(visitor: Visitor) -> None:
    visitor.service.knowledge.passages = [replace(PASSAGE, url="https://x.org/leave")]
    page = await visitor.visit()
    await visitor.ask("leave?")
    await page.locator(".source").click()

    document = page.get_by_role("link", name="Open document")
    await expect(document).to_have_attribute("href", "https://x.org/leave")
    await expect(document).to_have_attribute("rel", "noopener noreferrer")
    await page.locator(".asked").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_sources_of_one_document_are_told_apart(visitor: Visitor) -> None:
    chapter = "Corto 20 espresso machine: warranty and service"
    ends = ["Length of the warranty", "What is covered"]
    visitor.service.knowledge.passages = [
        replace(PASSAGE, id=end, location=f"{chapter} > {end}") for end in ends
    ]
    visitor.service.model.script = says("Two years [1]. Faults of material [2].")
    page = await visitor.visit()
    await visitor.ask("leave?")

    for number, end in enumerate(ends, 1):
        name = f"Source {number}: leave.md, {chapter} › {end}"
        source = page.locator(".sources").get_by_role("button", name=name)
        last = source.locator(".last")
        await expect(last).to_have_text(f" › {end}")
        assert await last.evaluate("(part) => part.scrollWidth <= part.clientWidth")


async def test_numbers_in_a_block_quote_are_chips(visitor: Visitor) -> None:
    visitor.service.model.script = says("> 25 days of leave [1][2]. 每年[7]。")
    page = await visitor.visit()
    await visitor.ask("leave?")

    await expect(page.locator("blockquote .chip")).to_have_text("1")
    await expect(page.locator("blockquote")).to_have_text("25 days of leave 1. 每年。")


async def test_card_stays_inside_the_window(visitor: Visitor) -> None:
    long = replace(PASSAGE, text="A long passage. " * 200)
    visitor.service.knowledge.passages = [long]
    page = await visitor.visit()
    await visitor.ask("leave?")
    await page.locator(".source").click()

    box = await page.get_by_role("dialog").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["y"] >= 0
    assert box["x"] + box["width"] <= 1280
    assert box["y"] + box["height"] <= 800


async def test_card_is_a_sheet_on_a_phone(visitor: Visitor) -> None:
    page = await visitor.visit(size=PHONE)
    await visitor.ask("leave?")
    await page.locator(".chip").click()

    box = await page.get_by_role("dialog").bounding_box()
    assert box is not None
    assert box["width"] > 350
    assert box["y"] + box["height"] > 760
