"""Writing, the keyboard, and narrow screens."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import expect

from tests.e2e.page.conftest import PHONE, Visitor
from tests.integration.http.ports import stalls

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_enter_while_an_input_method_composes_does_not_send(visitor: Visitor) -> None:
    page = await visitor.visit(language="zh-CN")
    box = page.get_by_role("textbox")
    await box.focus()
    keyboard = await page.context.new_cdp_session(page)
    await page.evaluate(
        """() => document.addEventListener("keydown", (event) => {
          window.seen = [event.key, event.isComposing];
        }, { capture: true })"""
    )
    composed = {"text": "nianjia", "selectionStart": 7, "selectionEnd": 7}
    await keyboard.send("Input.imeSetComposition", composed)
    await page.keyboard.press("Enter")

    assert await page.evaluate("window.seen") == ["Enter", True]
    await expect(page.locator(".turn")).to_have_count(0)

    await box.fill("")
    await keyboard.send("Input.imeSetComposition", composed)
    await keyboard.send("Input.insertText", {"text": "年假有几天"})
    await expect(box).to_have_value("年假有几天")
    await page.keyboard.press("Enter")
    await expect(page.locator(".asked")).to_have_text("年假有几天")


async def test_enter_of_an_input_method_that_ended_just_now_does_not_send(
    visitor: Visitor,
) -> None:
    page = await visitor.visit()
    await page.get_by_role("textbox").fill("nianjia")
    await page.evaluate(
        """() => document.querySelector("textarea").dispatchEvent(
          new KeyboardEvent("keydown", { key: "Enter", keyCode: 229, bubbles: true }))"""
    )

    await expect(page.locator(".turn")).to_have_count(0)


async def test_escape_stops_the_answer_and_what_was_written_stays(visitor: Visitor) -> None:
    visitor.service.model.script = stalls("A long answer")
    page = await visitor.visit()
    hint = page.locator(".hint")
    await expect(hint).to_have_text("Enter sends, Shift + Enter starts a new line.")
    await visitor.ask("leave?", wait=False)
    await expect(page.locator(".prose")).to_have_text("A long answer")
    await expect(hint).to_contain_text("Escape stops it")
    box = page.get_by_role("textbox", name="Your question")
    await box.fill("And pay?")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status")).to_contain_text("Escape stops it")
    await page.keyboard.press("Escape")

    await expect(page.locator(".stopped")).to_be_visible()
    await expect(hint).to_have_text("Enter sends, Shift + Enter starts a new line.")
    await expect(box).to_have_value("And pay?")
    (turns,) = visitor.service.history.turns.values()
    assert [turn.status for turn in turns] == ["stopped"]


async def test_escape_is_for_what_is_open_before_it_is_for_the_answer(visitor: Visitor) -> None:
    page = await visitor.visit(language="zh-CN")
    await visitor.ask("leave?")
    visitor.service.model.script = stalls("A long answer")
    await visitor.ask("hello", wait=False)
    await expect(page.locator(".prose").last).to_have_text("A long answer")

    await page.get_by_role("button", name="查询范围").click()
    await page.locator(".menu").wait_for()
    await page.keyboard.press("Escape")
    await page.locator(".chip").hover()
    await page.get_by_role("dialog").wait_for()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.get_by_role("button", name="修改问题").first.click()
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="回答得不好").first.click()
    await page.locator(".comment textarea").press("Escape")
    await expect(page.locator(".comment")).to_have_count(0)
    await page.locator(".session").hover()
    await page.locator(".session .more").click()
    await page.locator(".menu").get_by_text("重命名").click()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.locator("#question").focus()
    keyboard = await page.context.new_cdp_session(page)
    composed = {"text": "nianjia", "selectionStart": 7, "selectionEnd": 7}
    await keyboard.send("Input.imeSetComposition", composed)
    await page.keyboard.press("Escape")
    await asyncio.sleep(0.3)
    await expect(page.locator(".stopped")).to_have_count(0)
    await keyboard.send("Input.insertText", {"text": "年假"})
    await page.keyboard.press("Escape")

    await expect(page.locator(".stopped")).to_be_visible()


async def test_enter_on_a_phone_tells_that_an_answer_is_being_written(visitor: Visitor) -> None:
    visitor.service.model.script = stalls("A long answer")
    page = await visitor.visit(size=PHONE)
    await visitor.ask("leave?", wait=False)
    await expect(page.locator(".prose")).to_have_text("A long answer")
    await expect(page.locator(".hint")).not_to_be_visible()
    await page.locator("#question").fill("And pay?")
    await page.keyboard.press("Enter")

    await expect(page.locator(".hint")).to_be_visible()
    await page.get_by_role("button", name="Stop the answer").click()
    await expect(page.locator(".hint")).not_to_be_visible()


async def test_shift_and_enter_begin_a_line(visitor: Visitor) -> None:
    page = await visitor.visit()
    box = page.get_by_role("textbox")
    await box.press_sequentially("one")
    await page.keyboard.press("Shift+Enter")
    await page.keyboard.insert_text("two")
    height = await box.evaluate("(box) => box.clientHeight")
    await page.keyboard.press("Enter")

    await expect(page.locator(".asked p")).to_have_text("one\ntwo")
    assert height > 50


async def test_nothing_is_sent_from_an_empty_box(visitor: Visitor) -> None:
    page = await visitor.visit()
    await page.get_by_role("textbox").fill("  \n ")
    await page.keyboard.press("Enter")

    await expect(page.get_by_role("button", name="Send")).to_be_disabled()
    await expect(page.locator(".turn")).to_have_count(0)


async def test_all_is_reached_by_keyboard(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    await page.evaluate("document.activeElement.blur()")
    names = []
    for _ in range(26):
        await page.keyboard.press("Tab")
        names.append(
            await page.evaluate(
                """() => {
                  const it = document.activeElement;
                  return it.getAttribute("aria-label") ?? it.textContent;
                }"""
            )
        )

    for name in (
        "Skip to the question",
        "New conversation",
        "Search conversations",
        "More for “leave?”",
        "Import a conversation",
        "Just chat",
        "Source 1: leave.md, Leave › Annual leave",
        "Copy",
        "Edit the question",
        "Answer again",
        "Why this answer",
        "Good answer",
        "Your question",
        "Where to look",
    ):
        assert name in names, f"{name} is not among {names}"


async def test_page_fits_a_phone(visitor: Visitor) -> None:
    page = await visitor.visit(size=PHONE)
    visitor.service.model.script = _wide
    await visitor.ask("w" * 300)

    widths = await page.evaluate(
        "[document.documentElement.scrollWidth, document.querySelector('#scroll').scrollWidth]"
    )
    assert max(widths) <= PHONE["width"]
    await expect(page.locator(".sidebar")).not_to_be_visible()
    await page.get_by_role("button", name="Show conversations").click()
    await expect(page.get_by_role("button", name="New conversation")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.locator(".sidebar")).not_to_be_visible()
    await expect(page.get_by_role("button", name="Show conversations")).to_be_focused()
    await page.get_by_role("button", name="Show conversations").click()
    await page.get_by_role("button", name="New conversation").click()
    await expect(page.locator(".sidebar")).not_to_be_visible()
    await expect(page.get_by_text("What would you like to know?")).to_be_visible()


async def _wide(_: str) -> AsyncIterator[str]:
    yield "```\n" + "x" * 500 + "\n```\n\n| a | b | c | d |\n|---|---|---|---|\n"
    yield "| " + " | ".join(["long words"] * 4) + " |\n\nhttps://x.org/" + "y" * 300
