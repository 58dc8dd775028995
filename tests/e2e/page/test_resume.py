"""An answer goes on without its page, and the page finds it again."""

import threading

import pytest
from playwright.async_api import Browser, expect

from tests.e2e.page.conftest import HALVES, Browsers, Guest, Kept, Visitor
from tests.e2e.page.relay import relay_to
from tests.integration.http.ports import says, stalls, waits

pytestmark = pytest.mark.asyncio(loop_scope="session")

WHOLE = "".join(HALVES)
LOST = "The connection was lost. Trying again …"


async def test_reload_during_an_answer_goes_on_with_it(visitor: Visitor) -> None:
    go_on = threading.Event()
    visitor.service.model.script = waits("Half an answer [1]", go_on, " and its **rest**.")
    page = await visitor.visit()
    await visitor.ask("leave?", wait=False)
    await expect(page.locator(".prose")).to_contain_text("Half an answer")
    await page.reload()

    await expect(page.locator(".prose")).to_contain_text("Half an answer")
    await expect(page.locator(".asked")).to_have_text("leave?")
    await expect(page.locator(".way")).to_contain_text("Searched Handbook")
    await expect(page.get_by_role("button", name="Stop the answer")).to_be_visible()
    go_on.set()
    await expect(page.locator(".prose strong")).to_have_text("rest")
    await expect(page.get_by_role("button", name="Source 1: leave.md")).to_have_count(2)
    await expect(page.locator(".turn")).to_have_count(1)
    assert len(visitor.service.history.turns) == 1


async def test_reload_before_the_first_word_shows_question_and_stage(visitor: Visitor) -> None:
    visitor.service.model.routing_seconds = 1
    page = await visitor.visit()
    async with page.expect_response("**/api/chat"):  # else the question goes with the page
        await visitor.ask("leave?", wait=False)
    await expect(page.locator(".way")).to_have_text("Understanding the question")
    await page.reload()

    await expect(page.locator(".way")).to_contain_text("Searched Handbook")
    await expect(page.locator(".asked")).to_have_text("leave?")
    await expect(page.locator(".turn")).to_have_count(1)


async def test_answer_can_be_stopped_after_a_reload(visitor: Visitor) -> None:
    visitor.service.model.script = stalls("Half an answer")
    page = await visitor.visit()
    await visitor.ask("leave?", wait=False)
    await expect(page.locator(".prose")).to_have_text("Half an answer")
    await page.reload()
    await page.get_by_role("button", name="Stop the answer").click()

    await expect(page.get_by_text("Stopped. What was said")).to_be_visible()
    visitor.service.model.script = says("A whole one.")
    await visitor.ask("and now?")
    (turns,) = visitor.service.history.turns.values()
    assert [(turn.answer, turn.status) for turn in turns] == [
        ("Half an answer", "stopped"),
        ("A whole one.", "complete"),
    ]


async def test_answer_that_takes_the_place_of_another_does_so_after_a_reload(
    visitor: Visitor,
) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    go_on = threading.Event()
    visitor.service.model.script = waits("A new", go_on, " answer.")
    await page.get_by_role("button", name="Answer again").click()
    await expect(page.locator(".prose")).to_have_text("A new")
    await page.reload()

    await expect(page.locator(".prose")).to_have_count(1)  # once it is known what it replaces
    await expect(page.locator(".prose")).to_have_text("A new")
    go_on.set()
    await expect(page.locator(".prose")).to_have_text("A new answer.")


async def test_two_pages_show_the_same_answer_as_it_comes(visitor: Visitor) -> None:
    go_on = threading.Event()
    visitor.service.model.script = waits("Half", go_on, " and half.")
    page = await visitor.visit()
    await visitor.ask("leave?", wait=False)
    await expect(page.locator(".prose")).to_have_text("Half")
    other = await page.context.new_page()
    await other.goto(page.url)
    await expect(other.locator(".prose")).to_have_text("Half")
    go_on.set()

    for each in (page, other):
        await expect(each.locator(".prose")).to_have_text("Half and half.")
    await other.close()


@pytest.mark.parametrize("worker", [0, 1], ids=["the same worker", "another worker"])
async def test_lost_connection_is_taken_up_where_it_broke(
    browser: Browser, kept: Kept, worker: int
) -> None:
    async with relay_to(kept.urls[0]) as relay:
        guest = Guest(Browsers(browser, relay.url))
        page = await guest.visit(f"/?session=broken-{worker}")
        await guest.ask("slowly", wait=False)
        await expect(page.locator(".prose")).to_have_text(HALVES[0])
        await relay.cut()
        await expect(page.locator(".way")).to_have_text(LOST)
        relay.target = kept.urls[worker]
        await relay.mend()
        await expect(page.locator(".way")).to_contain_text("Answered without", timeout=15_000)
        kept.go_on.set()

        await expect(page.locator(".prose")).to_have_text(WHOLE, timeout=15_000)
        await expect(page.locator(".actions")).to_be_visible()
        await guest.leave()


async def test_answer_is_stopped_from_a_page_on_another_worker(
    browser: Browser, kept: Kept
) -> None:
    guests = [Guest(Browsers(browser, url)) for url in kept.urls]
    page = await guests[0].visit("/?session=elsewhere")
    await guests[0].ask("slowly", wait=False)
    await expect(page.locator(".prose")).to_have_text(HALVES[0])
    other = await guests[1].visit("/?session=elsewhere")
    await expect(other.locator(".prose")).to_have_text(HALVES[0])
    await other.get_by_role("button", name="Stop the answer").click()

    for each in (page, other):
        await expect(each.get_by_text("Stopped. What was said")).to_be_visible()
    for guest in guests:
        await guest.leave()


async def test_waiting_for_the_connection_can_be_given_up(browser: Browser, kept: Kept) -> None:
    async with relay_to(kept.urls[0]) as relay:
        guest = Guest(Browsers(browser, relay.url))
        page = await guest.visit("/?session=given-up")
        await guest.ask("slowly", wait=False)
        await expect(page.locator(".prose")).to_have_text(HALVES[0])
        await relay.cut()
        await expect(page.locator(".way")).to_have_text(LOST)
        await page.get_by_role("button", name="Stop the answer").click()
        await expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
        await relay.mend()
        kept.go_on.set()
        await page.reload()

        await expect(page.locator(".prose")).to_have_text(WHOLE)
        await guest.leave()
