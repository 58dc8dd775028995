"""Why an answer is as it is, and the documents behind it."""

import pytest
from playwright.async_api import expect

from tests.e2e.page.conftest import PHONE, Guest, Visitor
from tests.integration.http.service import PASSAGE

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_why_tells_way_passages_model_and_times(guest: Guest) -> None:
    page = await guest.visit("/?session=why")
    await guest.ask("How many days of leave a year?")
    button = page.get_by_role("button", name="Why this answer")
    await button.click()
    why = page.locator(".why")

    for fact in (
        "RouteKnowledge base",
        "ReasonThe model decided so.",
        "QuestionHow many days of leave a year?",
        "Looked inHandbook",
        "Found: 1, cited: 1",
        "leave.md Leave · Handbook",
        "Modelscripted",
        "Tokens12 in, 7 out",
        "First word after",
        "Routing",
        "Answer",
    ):
        await expect(why).to_contain_text(fact)
    assert await why.locator(".bar-of-time").count() >= 3
    await why.locator("summary").click()
    await expect(why.locator("details p")).to_have_text(
        "Everybody has 25 days of leave a year."
    )
    await why.get_by_role("button", name="Copy").click()
    turn = await why.locator(".id code").first.inner_text()
    assert await page.evaluate("navigator.clipboard.readText()") == turn
    await button.click()
    await expect(why).to_have_count(0)


async def test_why_tells_how_the_question_was_put_in_context(guest: Guest) -> None:
    page = await guest.visit("/?session=context")
    await guest.ask("leave?")
    await guest.ask("and then?")
    await page.get_by_role("button", name="Why this answer").last.click()

    await expect(page.locator(".why")).to_contain_text("Searched forannual leave")
    await expect(page.locator(".way").last).to_contain_text("for “annual leave”")


async def test_why_of_a_chat_has_no_passages(guest: Guest) -> None:
    page = await guest.visit("/?session=chat", language="zh-CN", size=PHONE)
    await guest.ask("hello")
    await page.get_by_role("button", name="为什么这样回答").click()

    await expect(page.locator(".why")).to_contain_text("由模型判断。")
    await expect(page.locator(".why ol")).to_have_count(0)


async def test_why_that_cannot_be_read_can_be_tried_again(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    await page.context.set_offline(offline=True)
    await page.get_by_role("button", name="Why this answer").click()
    await expect(page.locator(".why")).to_contain_text("cannot be reached")
    await page.context.set_offline(offline=False)
    await page.locator(".why").get_by_role("button", name="Try again").click()

    await expect(page.locator(".why")).to_contain_text(f"{PASSAGE.score:.2f}")


async def test_document_behind_a_citation_opens(guest: Guest) -> None:
    page = await guest.visit("/?session=document")
    await guest.ask("leave?")
    await page.locator(".source").click()
    async with page.context.expect_page() as opening:
        await page.get_by_role("link", name="Open document").click()
    document = await opening.value

    await expect(document.locator("body")).to_contain_text("Everybody has 25 days of leave")
    assert "/api/documents/Handbook/leave.md" in document.url
    assert await document.evaluate("window.opener") is None
    await document.close()
