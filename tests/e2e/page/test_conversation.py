"""Conversations on the page."""

import asyncio
import re
import threading
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import expect

from chatbot.domain import Assistant, Session
from chatbot.errors import ModelError
from tests.e2e.page.conftest import Visitor
from tests.integration.http.ports import Script

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHAT = "Just chat"
SEARCH = "Search the knowledge base instead"


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
    visitor.service.model.script = _stalls("Half an **answer")
    page = await visitor.visit()
    await visitor.ask("leave?", wait=False)
    await expect(page.locator(".prose strong")).to_have_text("answer")
    await page.get_by_role("button", name="Stop the answer").click()

    await expect(page.get_by_text("Stopped. What was said")).to_be_visible()
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    await expect(page.get_by_role("link", name="leave?")).to_be_visible()
    visitor.service.model.script = _says("A whole one.")
    await visitor.ask("and now?")
    await page.reload()

    await expect(page.locator(".turn")).to_have_count(2)
    await expect(page.locator(".turn").nth(0)).to_contain_text("Stopped. What was said")
    await expect(page.locator(".turn").nth(1)).to_contain_text("A whole one.")


async def test_reload_during_an_answer_shows_what_was_kept(visitor: Visitor) -> None:
    visitor.service.model.script = _stalls("Half an answer")
    page = await visitor.visit()
    await visitor.ask("leave?", wait=False)
    await expect(page.locator(".prose")).to_have_text("Half an answer")
    await page.reload()

    await expect(page.locator(".prose")).to_have_text("Half an answer")
    await expect(page.get_by_text("Stopped. What was said")).to_be_visible()


async def test_reload_shows_the_conversation_with_its_citations(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    before = await page.locator(".turn").inner_text()
    await page.reload()

    await expect(page.locator(".chip")).to_have_count(1)
    assert await page.locator(".turn").inner_text() == before


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

    await page.get_by_role("button", name="Delete “the second one”").click()
    await page.get_by_role("button", name="Cancel").click()
    assert len(visitor.service.history.turns) == 2
    await page.get_by_role("button", name="Delete “the second one”").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()

    await expect(page.get_by_role("link", name="the second one")).to_have_count(0)
    await expect(page.get_by_text("What would you like to know?")).to_be_visible()
    assert len(visitor.service.history.turns) == 1


async def test_answer_goes_on_while_another_conversation_is_shown(visitor: Visitor) -> None:
    go_on = threading.Event()
    visitor.service.model.script = _waits("Half", go_on, " and half.")
    page = await visitor.visit()
    await visitor.ask("a long one", wait=False)
    await expect(page.locator(".prose")).to_have_text("Half")
    await page.get_by_role("button", name="New conversation").click()
    visitor.service.model.script = _says("Short.")
    await visitor.ask("a short one")
    await page.go_back()
    await expect(page.locator(".prose")).to_have_text("Half")
    go_on.set()

    await expect(page.locator(".prose")).to_have_text("Half and half.")
    await expect(page.locator(".asked")).to_have_text("a long one")


@pytest.mark.parametrize(
    ("question", "button", "other", "intent"),
    [
        pytest.param("leave?", CHAT, SEARCH, "general_chat", id="chat instead"),
        pytest.param("hello", SEARCH, CHAT, "knowledge_base", id="search instead"),
    ],
)
async def test_one_click_takes_the_other_route(
    visitor: Visitor, question: str, button: str, other: str, intent: str
) -> None:
    page = await visitor.visit()
    await visitor.ask(question)
    await page.get_by_role("button", name=button).click()
    await expect(page.get_by_role("button", name=other)).to_be_visible()

    await expect(page.locator(".turn")).to_have_count(1)
    (turns,) = visitor.service.history.turns.values()
    assert [turn.question for turn in turns] == [question, question]
    assert turns[1].intent == intent
    assert turns[1].record["replaces"] == turns[0].id


async def test_other_route_is_taken_at_once_while_an_answer_is_written(
    visitor: Visitor,
) -> None:
    visitor.service.model.script = _stalls("A long answer")
    page = await visitor.visit()
    await visitor.ask("leave?", wait=False)
    await expect(page.locator(".prose")).to_have_text("A long answer")
    visitor.service.model.script = _says("A short one.")
    await page.get_by_role("button", name=CHAT).click()

    await expect(page.locator(".prose")).to_have_text("A short one.")
    (turns,) = visitor.service.history.turns.values()
    assert [turn.status for turn in turns] == ["stopped", "complete"]


async def test_chosen_assistants_alone_are_asked(visitor: Visitor) -> None:
    visitor.service.knowledge.known = [
        Assistant(id="a1", name="Handbook", description="Leave."),
        Assistant(id="a2", name="瓦尔登湖", description="湖。"),
    ]
    page = await visitor.visit()
    await page.get_by_role("button", name="Where to look").click()
    await expect(page.get_by_role("checkbox", name="All knowledge")).to_be_checked()
    await page.get_by_role("checkbox", name="瓦尔登湖").check()
    await expect(page.get_by_role("checkbox", name="All knowledge")).not_to_be_checked()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("checkbox")).to_have_count(0)
    await visitor.ask("leave?")

    await expect(page.locator(".way")).to_contain_text("Searched 瓦尔登湖")


async def test_answer_is_copied(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    await page.get_by_role("button", name="Copy").click()

    await expect(page.get_by_text("Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == "25 days of leave [1]."


async def test_last_answer_is_replaced_by_a_new_one(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    visitor.service.model.script = _says("Another answer.")
    await page.get_by_role("button", name="Answer again").click()

    await expect(page.locator(".prose")).to_have_text("Another answer.")
    await expect(page.locator(".actions")).to_have_count(1)
    await page.reload()
    await expect(page.locator(".prose")).to_have_text("Another answer.")


async def test_earlier_question_is_answered_again_behind_the_others(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    await visitor.ask("hello")
    await page.get_by_role("button", name="Answer again").first.click()
    await page.locator(".actions").nth(2).wait_for()

    asked = await page.locator(".asked").all_inner_texts()
    assert [text.strip() for text in asked] == ["leave?", "hello", "leave?"]


async def test_question_is_edited_in_its_place(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    await visitor.ask("hello")
    await page.locator(".turn").first.hover()
    await page.get_by_role("button", name="Edit the question").first.click()
    field = page.get_by_role("textbox", name="Edit the question")
    await expect(field).to_have_value("leave?")
    await page.keyboard.press("Escape")
    await expect(page.locator(".turn")).to_have_count(2)
    await page.get_by_role("button", name="Edit the question").first.click()
    await field.fill("pay?")
    await page.keyboard.press("Enter")
    await page.locator(".actions").wait_for()

    await expect(page.locator(".asked")).to_have_text("pay?")
    await page.reload()
    await expect(page.locator(".asked")).to_have_text("pay?")


async def test_what_should_be_replaced_stays_where_nothing_takes_its_place(
    visitor: Visitor,
) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    await page.context.set_offline(offline=True)
    await page.get_by_role("button", name="Answer again").click()
    await expect(page.get_by_role("alert")).to_contain_text("The service cannot be reached.")
    await expect(page.locator(".prose").first).to_contain_text("25 days of leave")
    await page.context.set_offline(offline=False)
    visitor.service.model.script = _says("Another answer.")
    await page.get_by_role("button", name="Try again").click()

    await expect(page.locator(".prose")).to_have_text("Another answer.")


async def test_why_gives_the_facts_of_the_answer(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    await page.get_by_role("button", name="Why this answer").click()

    await expect(page.locator(".why")).to_contain_text("the model called knowledge_base")
    await page.get_by_role("button", name="Why this answer").click()
    await expect(page.locator(".why")).to_have_count(0)


async def test_failure_says_what_happened_and_can_be_tried_again(visitor: Visitor) -> None:
    async def fails(_: str) -> AsyncIterator[str]:
        yield "25 days"
        message = "The model is busy."
        raise ModelError("rate_limit", message, retry_after=1)

    visitor.service.model.script = fails
    page = await visitor.visit()
    await visitor.ask("leave?")
    alert = page.get_by_role("alert")
    await expect(alert).to_contain_text("The model is busy.")
    await expect(alert.get_by_role("button", name="Try again in 1 s")).to_be_disabled()
    await expect(page.locator(".prose")).to_have_text("25 days")
    visitor.service.model.script = _says("Now it works.")
    await alert.get_by_role("button", name="Try again", exact=True).click()

    await expect(page.locator(".prose")).to_have_text("Now it works.")


async def test_service_that_is_gone_is_told_plainly(visitor: Visitor) -> None:
    page = await visitor.visit()
    await page.context.set_offline(offline=True)
    await visitor.ask("leave?")
    await expect(page.get_by_role("alert")).to_contain_text("The service cannot be reached.")
    await page.context.set_offline(offline=False)
    await page.get_by_role("button", name="Try again").click()

    await expect(page.locator(".turn .prose").last).to_contain_text("25 days of leave")


async def test_thoughts_are_apart_from_the_answer(visitor: Visitor) -> None:
    visitor.service.model.thoughts = "They ask about leave."
    page = await visitor.visit()
    await visitor.ask("leave?")

    await expect(page.locator(".prose").first).to_have_text("25 days of leave 1.")
    await page.get_by_text("Thoughts").click()
    await expect(page.get_by_text("They ask about leave.")).to_be_visible()


async def test_limited_service_is_told_in_plain_words(visitor: Visitor) -> None:
    visitor.service.knowledge.down = "RAGFlow cannot be reached."
    visitor.service.history.degraded = "MongoDB cannot be reached."
    page = await visitor.visit()
    await page.get_by_role("button", name="Limited service").click()
    await expect(page.locator(".bar .menu")).to_contain_text("RAGFlow cannot be reached.")
    await visitor.ask("leave?")

    await expect(page.locator(".note")).to_have_count(2)
    await expect(page.locator(".way")).to_contain_text("could not be searched")


async def test_conversation_that_cannot_be_loaded_can_be_tried_again(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    visitor.service.history.degraded = "gone"
    await page.reload()
    await expect(page.get_by_role("alert")).to_contain_text("could not be loaded")
    visitor.service.history.degraded = ""
    await page.get_by_role("button", name="Try again").click()

    await expect(page.locator(".turn")).to_contain_text("25 days of leave")


async def test_address_of_a_new_conversation_opens_an_empty_one(visitor: Visitor) -> None:
    page = await visitor.visit("/?session=mine")
    await expect(page.get_by_text("What would you like to know?")).to_be_visible()
    await visitor.ask("leave?")

    assert list(visitor.service.history.turns) == [Session(session_id="mine")]


def _says(*pieces: str) -> Script:
    async def script(_: str) -> AsyncIterator[str]:
        for piece in pieces:
            yield piece

    return script


def _stalls(text: str) -> Script:
    async def script(_: str) -> AsyncIterator[str]:
        yield text
        await asyncio.sleep(60)

    return script


def _waits(first: str, go_on: threading.Event, rest: str) -> Script:
    async def script(_: str) -> AsyncIterator[str]:
        yield first
        await asyncio.to_thread(go_on.wait, 10)
        yield rest

    return script
