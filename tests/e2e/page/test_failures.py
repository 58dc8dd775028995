"""What the page says when something does not work."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from playwright.async_api import Browser, expect

from chatbot.errors import ModelError
from tests.e2e.page.conftest import Browsers, Guest, Kept, Visitor
from tests.e2e.page.relay import relay_to
from tests.integration.http.ports import says
from tests.servers.loopback import Loopback, Reply, Request

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
    await expect(page.get_by_role("button", name="Answer again")).to_have_count(0)
    visitor.service.model.script = says("Now it works.")
    await alert.get_by_role("button", name="Try again", exact=True).click()

    await expect(page.locator(".prose")).to_have_text("Now it works.")


async def test_service_that_is_gone_is_told_plainly(visitor: Visitor) -> None:
    page = await visitor.visit()
    await page.context.set_offline(offline=True)
    await visitor.ask("leave?", wait=False)
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


async def test_a_part_that_failed_in_two_ways_is_told_of_once(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    reasons = ["It could not be read.", "It could not be written."]
    ((session, [kept]),) = visitor.service.history.turns.items()
    degraded = [{"part": "history", "reason": reason} for reason in reasons]
    changed = replace(kept, record={**kept.record, "degraded": degraded})
    visitor.service.history.turns[session] = [changed]
    await page.reload()

    await expect(page.locator(".note")).to_have_count(1)
    await page.locator(".note summary").click()
    for reason in reasons:
        await expect(page.locator(".note details")).to_contain_text(reason)


async def test_conversation_that_cannot_be_loaded_can_be_tried_again(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    visitor.service.history.degraded = "gone"
    await page.reload()
    await expect(page.get_by_role("alert")).to_contain_text("could not be loaded")
    visitor.service.history.degraded = ""
    await page.get_by_role("alert").get_by_role("button", name="Try again").click()

    await expect(page.locator(".turn")).to_contain_text("25 days of leave")


async def test_conversations_that_cannot_be_listed_are_not_said_to_be_missing(
    visitor: Visitor,
) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    visitor.service.history.degraded = "gone"
    await page.goto("/")
    listed = page.locator(".sidebar nav")
    await expect(listed).to_contain_text("Your conversations could not be loaded.")
    await expect(listed).not_to_contain_text("will appear here")
    await listed.get_by_role("button", name="Try again").click()
    await expect(listed).to_contain_text("Your conversations could not be loaded.")
    await page.get_by_role("button", name="切换到中文").click()
    await expect(listed).to_contain_text("无法加载您的对话。 暂时无法读取对话记录。")
    visitor.service.history.degraded = ""
    await listed.get_by_role("button", name="重试").click()

    await expect(listed.locator(".session")).to_contain_text("leave?")
    await expect(listed).not_to_contain_text("无法加载")


async def test_conversations_that_were_listed_stay_where_they_cannot_be_read_again(
    visitor: Visitor,
) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    await expect(page.locator(".session")).to_have_count(1)
    await page.context.set_offline(offline=True)
    await visitor.ask("and pay?", wait=False)
    await expect(page.locator(".failure")).to_be_visible()

    await expect(page.locator(".session")).to_contain_text("leave?")
    await expect(page.locator(".sidebar nav")).not_to_contain_text("could not be loaded")


@pytest.mark.parametrize(
    ("language", "id_", "told"),
    [
        pytest.param(
            "en-US", "a%20b", "This conversation could not be loaded. The", id="blank, English"
        ),
        pytest.param(
            "zh-CN", "a%20b", "无法加载这个对话。 服务无法处理发送的内容。", id="blank, Chinese"
        ),
        pytest.param("en-US", "..", "This is not the address of a conversation.", id="step up"),
        pytest.param("zh-CN", ".", "无法加载这个对话。 这不是对话的地址。", id="no step"),
    ],
)
async def test_address_of_no_conversation_is_told(
    visitor: Visitor, language: str, id_: str, told: str
) -> None:
    page = await visitor.visit(f"/?session={id_}", language=language)

    await expect(page.get_by_role("alert")).to_contain_text(told)
    await expect(page.locator("body")).not_to_contain_text("{")


async def test_failure_that_will_be_the_same_again_is_not_tried_again(
    visitor: Visitor,
) -> None:
    async def refuses(_: str) -> AsyncIterator[str]:
        yield "25"
        message = "The model held that back."
        raise ModelError("content_filter", message)

    visitor.service.model.script = refuses
    page = await visitor.visit()
    await visitor.ask("leave?")

    await expect(page.get_by_role("alert")).to_contain_text("The model held that back.")
    await expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    await expect(page.get_by_role("button", name="Answer again")).to_have_count(1)
    await page.get_by_role("button", name="切换到中文").click()
    await expect(page.get_by_role("alert")).to_contain_text("模型的内容审核拒绝了这段文字")


async def test_server_in_between_that_fails_is_told_and_waited_for(
    browser: Browser, kept: Kept
) -> None:
    async def busy(_: Request, reply: Reply) -> None:
        reply.extra.append(("Retry-After", "7"))
        await reply.send(b"<h1>Bad gateway</h1>", status=502, content_type="text/html")

    async with relay_to(kept.urls[0]) as relay:
        guest = Guest(Browsers(browser, relay.url))
        page = await guest.visit("/?session=between")
        await expect(page.get_by_text("What would you like to know?")).to_be_visible()
        with Loopback(busy) as gateway:
            await relay.cut()
            relay.target = gateway.url
            await relay.mend()
            await guest.ask("hello", wait=False)
            alert = page.locator(".failure")
            await expect(alert).to_contain_text("an answer that cannot be read")
            await expect(alert.get_by_role("button", name="Try again in")).to_be_disabled()
            await relay.cut()
            relay.target = kept.urls[0]
            await relay.mend()
        await guest.leave()
