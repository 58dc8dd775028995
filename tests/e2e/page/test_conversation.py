"""Conversations on the page."""

import asyncio
import re
import threading

import pytest
from playwright.async_api import Route, expect

from chatbot.domain import Session
from tests.e2e.page.conftest import Visitor
from tests.integration.http.ports import says, stalls, waits

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_conversation_from_a_suggestion_to_a_follow_up(visitor: Visitor) -> None:
    page = await visitor.visit()
    await page.get_by_role("button", name="What should I know about pay and benefits?").click()
    await expect(page.locator(".turn .prose")).to_contain_text("25 days of leave")
    await expect(page.get_by_text("Searched Handbook")).to_be_visible()
    await expect(page.get_by_role("button", name="Source 1: leave.md")).to_have_count(2)

    await visitor.ask("And in the second year?")

    await expect(page.locator(".turn")).to_have_count(2)
    prompt = str(visitor.service.model.asked[-1])
    assert "What should I know about pay and benefits?" in prompt
    await expect(page.get_by_role("textbox")).to_be_focused()
    await expect(page).to_have_title(re.compile("What should I know about pay"))
    listed = page.get_by_role("link", name="What should I know about pay and benefits?")
    await expect(listed).to_have_attribute("aria-current", "page")


async def test_stages_are_told_while_they_happen(visitor: Visitor) -> None:
    visitor.service.model.routing_seconds = 0.4
    page = await visitor.visit()
    await visitor.ask("leave?", wait=False)

    await expect(page.locator(".way")).to_have_text("Understanding the question")
    await expect(page.get_by_role("status")).to_have_text("Understanding the question")
    await expect(page.locator(".way")).to_have_text(re.compile("Searched Handbook"))
    await expect(page.get_by_role("status")).to_have_text(re.compile("Answer: 25 days"))


async def test_rewritten_question_is_shown(visitor: Visitor) -> None:
    visitor.service.model.rewrites["那它的风景怎么样"] = "瓦尔登湖的风景怎么样"
    page = await visitor.visit(language="zh-CN")
    await visitor.ask("瓦尔登湖在哪里？")
    await visitor.ask("那它的风景怎么样")

    expected = "已在Handbook中检索“瓦尔登湖的风景怎么样”"
    await expect(page.locator(".turn").nth(1).locator(".way")).to_contain_text(expected)


async def test_stop_keeps_what_was_said(visitor: Visitor) -> None:
    visitor.service.model.script = stalls("Half an **answer")
    page = await visitor.visit()
    await visitor.ask("leave?", wait=False)
    await expect(page.locator(".prose strong")).to_have_text("answer")
    await page.get_by_role("button", name="Stop the answer").click()

    await expect(page.get_by_text("Stopped. What was said")).to_be_visible()
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    await expect(page.get_by_role("link", name="leave?")).to_be_visible()
    visitor.service.model.script = says("A whole one.")
    await visitor.ask("and now?")
    await page.reload()

    await expect(page.locator(".turn")).to_have_count(2)
    await expect(page.locator(".turn").nth(0)).to_contain_text("Stopped. What was said")
    await expect(page.locator(".turn").nth(1)).to_contain_text("A whole one.")


async def test_reload_shows_the_conversation_with_its_citations(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    before = await page.locator(".turn").inner_text()
    await page.reload()

    await expect(page.locator(".chip")).to_have_count(1)
    assert await page.locator(".turn").inner_text() == before


async def test_a_question_asked_before_the_conversation_came_is_there_once(
    visitor: Visitor,
) -> None:
    page = await visitor.visit()
    answered = asyncio.Event()

    async def late(route: Route) -> None:
        await answered.wait()
        await route.continue_()

    read = re.compile(r"/api/sessions/early(\?|$)")
    await page.route(read, late)
    await page.goto("/?session=early")
    await visitor.ask("leave?")
    async with page.expect_response(read) as reading:
        answered.set()
    await (await reading.value).finished()
    await visitor.ask("And in the second year?")

    await expect(page.locator(".turn")).to_have_count(2)


async def test_conversations_are_opened_begun_and_deleted(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("the first one")
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.get_by_text("What would you like to know?")).to_be_visible()
    await visitor.ask("the second one")
    await page.get_by_role("link", name="the first one").click()
    await expect(page.locator(".asked")).to_have_text("the first one")
    await page.go_back()
    await expect(page.locator(".asked")).to_have_text("the second one")

    for choice, left in (("Cancel", 2), ("Delete", 1)):
        await page.get_by_role("button", name="More for “the second one”").click()
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name=choice).click()
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(page.locator(".session")).to_have_count(left)

    await expect(page.get_by_role("link", name="the second one")).to_have_count(0)
    await expect(page.get_by_text("What would you like to know?")).to_be_visible()
    assert len(visitor.service.history.turns) == 1


async def test_answer_goes_on_while_another_conversation_is_shown(visitor: Visitor) -> None:
    go_on = threading.Event()
    visitor.service.model.script = waits("Half", go_on, " and half.")
    page = await visitor.visit()
    await visitor.ask("a long one", wait=False)
    await expect(page.locator(".prose")).to_have_text("Half")
    await page.get_by_role("button", name="New conversation").click()
    visitor.service.model.script = says("Short.")
    await visitor.ask("a short one")
    await page.go_back()
    await expect(page.locator(".prose")).to_have_text("Half")
    go_on.set()

    await expect(page.locator(".prose")).to_have_text("Half and half.")
    await expect(page.locator(".asked")).to_have_text("a long one")


async def test_thoughts_are_apart_from_the_answer(visitor: Visitor) -> None:
    visitor.service.model.thoughts = "They ask about leave."
    page = await visitor.visit()
    await visitor.ask("leave?")

    await expect(page.locator(".prose").first).to_have_text("25 days of leave 1.")
    await page.get_by_text("Thoughts").click()
    await expect(page.get_by_text("They ask about leave.")).to_be_visible()


async def test_address_of_a_new_conversation_opens_an_empty_one(visitor: Visitor) -> None:
    page = await visitor.visit("/?session=mine")
    await expect(page.get_by_text("What would you like to know?")).to_be_visible()
    await visitor.ask("leave?")

    assert list(visitor.service.history.turns) == [Session(session_id="mine")]
