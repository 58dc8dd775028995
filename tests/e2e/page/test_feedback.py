"""What readers think of an answer."""

import httpx
import pytest
from playwright.async_api import expect

from tests.e2e.page.conftest import Guest, Kept, Visitor

pytestmark = pytest.mark.asyncio(loop_scope="session")

THANKS = "Thank you, that was kept."


def kept_feedback(kept: Kept, session: str) -> object:
    turns = httpx.get(f"{kept.urls[1]}/api/sessions/{session}").json()["turns"]
    return turns[-1]["feedback"]


async def test_thumb_and_comment_are_kept_changed_and_taken_back(
    guest: Guest, kept: Kept
) -> None:
    page = await guest.visit("/?session=rated")
    await guest.ask("leave?")
    bad = page.get_by_role("button", name="Bad answer")
    good = page.get_by_role("button", name="Good answer")
    await bad.click()
    await expect(bad).to_have_attribute("aria-pressed", "true")
    comment = page.get_by_role("textbox", name="What was wrong?")
    await expect(comment).to_be_visible()
    assert kept_feedback(kept, "rated") == {"thumb": "down", "comment": None}
    await comment.fill("<b>过时了</b>")
    await page.keyboard.press("Enter")
    await expect(page.locator("p.comment")).to_have_text(THANKS)
    assert kept_feedback(kept, "rated") == {"thumb": "down", "comment": "<b>过时了</b>"}

    await page.reload()
    await expect(bad).to_have_attribute("aria-pressed", "true")
    await good.click()
    await expect(good).to_have_attribute("aria-pressed", "true")
    await expect(bad).to_have_attribute("aria-pressed", "false")
    await expect(page.get_by_role("textbox", name="What was good?")).to_have_value(
        "<b>过时了</b>"
    )
    await page.get_by_role("button", name="Not now").click()
    await good.click()
    await expect(good).to_have_attribute("aria-pressed", "false")
    await expect(page.get_by_role("status")).to_have_text(THANKS)
    assert kept_feedback(kept, "rated") == {"thumb": None, "comment": None}


async def test_thumb_that_cannot_be_kept_is_taken_back(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    await page.context.set_offline(offline=True)
    await page.get_by_role("button", name="Good answer").click()

    await expect(page.get_by_role("alert")).to_contain_text("This could not be kept.")
    button = page.get_by_role("button", name="Good answer")
    await expect(button).to_have_attribute("aria-pressed", "false")
    await expect(page.locator(".comment")).to_have_count(0)
