"""Why an answer is as it is, and the documents behind it."""

from dataclasses import replace

import pytest
from playwright.async_api import ViewportSize, expect

from tests.e2e.page.conftest import DESK, PHONE, Guest, Visitor
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
        "Tokens besidesRouting: about ",
        "Begun earlysearches (used)",
        "First word after",
        "Routing",
    ):
        await expect(why).to_contain_text(fact)
    assert await why.locator(".bar-of-time").count() >= 1  # what took no time has none
    await why.locator("summary").click()
    await expect(why.locator("details p")).to_have_text(
        "Everybody has 25 days of leave a year."
    )
    await why.get_by_role("button", name="Copy").click()
    turn = await why.locator(".id code").first.inner_text()
    assert await page.evaluate("navigator.clipboard.readText()") == turn
    await button.click()
    await expect(why).to_have_count(0)


ENOUGH = 200  # of something that is higher than the window
SMALL = ViewportSize(width=375, height=667)


@pytest.mark.parametrize("size", [DESK, SMALL], ids=["desk", "phone"])
@pytest.mark.parametrize(
    ("button", "opened"),
    [
        pytest.param("Why this answer", ".why .times", id="why"),
        pytest.param("Bad answer", ".comment.editor", id="comment"),
    ],
)
async def test_what_opens_below_an_answer_is_brought_into_sight(
    guest: Guest, button: str, opened: str, size: ViewportSize
) -> None:
    page = await guest.visit(f"/?session=sight-{size['width']}-{opened[1:4]}", size=size)
    for _ in range(3):
        await guest.ask("How many days of leave a year?")
    await page.locator("#scroll").evaluate(CLOSE_TO_THE_DOCK, button)
    await page.get_by_role("button", name=button).last.click()
    await page.locator(opened).wait_for()
    seen = await page.locator("#scroll").bounding_box()
    box = await page.locator(opened.split(maxsplit=1)[0]).bounding_box()

    assert seen is not None
    assert box is not None
    assert box["y"] >= seen["y"]
    assert box["y"] + min(box["height"], ENOUGH) <= seen["y"] + seen["height"]


# Scrolls until the last button of this name stands right above the composer.
CLOSE_TO_THE_DOCK = """(scroll, name) => {
  const buttons = [...scroll.querySelectorAll("button")];
  const named = buttons.filter((each) => (each.ariaLabel ?? each.textContent) === name);
  const dock = document.getElementById("dock").getBoundingClientRect().top;
  scroll.scrollTop += named.at(-1).getBoundingClientRect().bottom + 4 - dock;
}"""


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
    await expect(page.locator(".why")).to_contain_text("提前开始检索（未采用）")
    await expect(page.locator(".why ol")).to_have_count(0)


@pytest.mark.parametrize(
    ("language", "button", "begun", "told"),
    [
        ("en-US", "Why this answer", ("used", "used"), "searches (used), the answer (used)"),
        ("en-US", "Why this answer", ("unused", None), "searches (unused)"),
        ("zh-CN", "为什么这样回答", ("used", "failed"), "检索（已采用）、回答（失败）"),
        ("zh-CN", "为什么这样回答", (None, None), None),
    ],
)
async def test_why_tells_what_was_begun_before_it_was_known_to_be_wanted(
    visitor: Visitor,
    language: str,
    button: str,
    begun: tuple[str | None, ...],
    told: str | None,
) -> None:
    page = await visitor.visit(language=language)
    await visitor.ask("leave?")
    ((session, [kept]),) = visitor.service.history.turns.items()
    early = dict(zip(("prefetch", "head_start"), begun, strict=True))
    visitor.service.history.turns[session] = [replace(kept, record={**kept.record, **early})]
    await page.get_by_role("button", name=button).click()
    await page.locator(".why .id").first.wait_for()

    row = page.locator(".why dt[data-words=begunEarly] + dd")
    assert await row.all_inner_texts() == ([told] if told else [])


async def test_why_tells_that_the_end_of_the_router_was_not_waited_for(
    visitor: Visitor,
) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    ((session, [kept]),) = visitor.service.history.turns.items()
    record = {**kept.record, "route_early": "used"}
    visitor.service.history.turns[session] = [replace(kept, record=record)]
    await page.get_by_role("button", name="Why this answer").click()

    told = "Read earlythe router's call, whose end was not waited for"
    await expect(page.locator(".why")).to_contain_text(told)


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
