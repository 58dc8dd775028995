"""What the page says when something does not work."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import expect

from chatbot.errors import ModelError
from tests.e2e.page.conftest import Visitor
from tests.integration.http.ports import says

pytestmark = pytest.mark.asyncio(loop_scope="session")


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
    visitor.service.model.script = says("Now it works.")
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
