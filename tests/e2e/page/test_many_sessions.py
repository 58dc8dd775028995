"""The side of somebody who has many conversations."""

import pytest
from playwright.async_api import Browser, expect

from tests.e2e.page.conftest import Browsers, Guest
from tests.integration.http.many_sessions import many_sessions

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_older_conversations_are_listed_when_asked_for(browser: Browser) -> None:
    with many_sessions(205) as url:
        guest = Guest(Browsers(browser, url))
        page = await guest.visit()
        await expect(page.locator(".session")).to_have_count(200)
        await expect(page.locator(".session").first).to_have_text("Question 204?")
        await page.get_by_role("button", name="Older conversations").click()

        await expect(page.locator(".session")).to_have_count(205)
        await expect(page.locator(".session").last).to_have_text("Question 0?")
        await expect(page.get_by_role("button", name="Older conversations")).to_have_count(0)
        await guest.leave()
