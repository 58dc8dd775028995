"""Whatever people, documents and models write stays text."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from playwright.async_api import FilePayload, expect

from chatbot.domain import Assistant
from tests.e2e.page.conftest import Guest, Visitor
from tests.integration.http.service import PASSAGE

pytestmark = pytest.mark.asyncio(loop_scope="session")

ATTACK = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\'"><b>x</b>'
ANSWER = (
    f'{ATTACK} [1]\n\n[link](javascript:window.hacked=1) <https://x.org/"onmouseover=hacked()>\n\n'
    "![i](https://evil.example.com/pixel.png)\n\n```html\n<script>window.hacked=1</script>\n```"
)


async def _attacks(_: str) -> AsyncIterator[str]:
    yield ANSWER


async def test_markup_is_shown_and_never_run(visitor: Visitor) -> None:
    service = visitor.service
    service.knowledge.known = [Assistant(id="a1", name=ATTACK, description=ATTACK)]
    attacked: dict[str, Any] = {
        "text": ATTACK,
        "document": ATTACK,
        "location": ATTACK,
        "assistant": ATTACK,
    }
    service.knowledge.passages = [replace(PASSAGE, **attacked, url="javascript:hacked()")]
    service.model.script = _attacks
    asked: list[str] = []
    page = await visitor.visit()
    page.on("request", lambda request: asked.append(request.url))
    await visitor.ask(ATTACK)
    await page.locator(".source").click()
    await page.locator(".card").wait_for()
    await page.get_by_role("button", name="Why this answer").click()
    await page.locator(".pick").click()
    await page.get_by_role("checkbox").nth(1).wait_for()
    await page.keyboard.press("Escape")
    await page.locator(".why .times").wait_for()
    await page.locator(".why summary").click()
    await page.locator(".session .more").first.click()
    await page.get_by_role("button", name="Delete").click()
    await expect(page.get_by_role("dialog")).to_contain_text(ATTACK[:60])
    await page.get_by_role("button", name="Cancel").click()
    await page.reload()
    await page.locator(".actions").wait_for()

    await expect(page.locator(".asked")).to_have_text(ATTACK)
    await expect(page.locator(".session a")).to_have_text(ATTACK[:60])
    assert await page.evaluate("window.hacked") is None
    inside = (
        "main img, main script, main b:not(.source b, summary b), main iframe, .session img"
    )
    await expect(page.locator(inside)).to_have_count(0)
    links = await page.locator("main a").evaluate_all("(all) => all.map((a) => a.href)")
    assert all(link.startswith("https://") for link in links)
    assert all(address.startswith(service.url) for address in asked)


async def test_markup_in_titles_searches_and_file_names_is_shown_and_never_run(
    guest: Guest,
) -> None:
    page = await guest.visit("/?session=attacked")
    await guest.ask("hello")
    row = page.locator(".session[data-current]")
    await row.hover()
    await row.locator(".more").click()
    await page.locator(".menu").get_by_text("Rename").click()
    await page.get_by_role("dialog").get_by_role("textbox").fill(ATTACK)
    await page.keyboard.press("Enter")
    await expect(page.locator(".bar h1")).to_have_text(re.compile("^<img src=x"))
    await page.get_by_role("searchbox").fill("<img")
    await expect(page.locator(".match mark").first).to_have_text("<img")
    async with page.expect_file_chooser() as choosing:
        await page.get_by_role("button", name="Import a conversation").click()
    file = FilePayload(name=f"{ATTACK}.json", mimeType="application/json", buffer=b"{")
    await (await choosing.value).set_files([file])
    await expect(page.locator(".sidebar .refused")).to_contain_text("could not be imported")
    await page.get_by_role("button", name="Bad answer").click()
    await page.locator(".comment textarea").fill(ATTACK)
    await page.keyboard.press("Enter")
    await page.reload()
    await page.locator(".actions").wait_for()

    assert await page.evaluate("window.hacked") is None
    await expect(page.locator(".sidebar :is(img:not(.brand img), script, b)")).to_have_count(0)


@pytest.mark.parametrize(
    "session",
    [
        pytest.param("<script>window.hacked=1</script>", id="markup"),
        pytest.param("../../health", id="path"),
        pytest.param("a b", id="not an id"),
        pytest.param("x" * 300, id="too long"),
    ],
)
async def test_address_with_a_strange_session_is_told_plainly(
    visitor: Visitor, session: str
) -> None:
    page = await visitor.visit(f"/?session={session.replace('/', '%2F').replace(' ', '%20')}")

    alert = page.get_by_role("alert")
    welcome = page.get_by_text("What would you like to know?")
    await expect(alert.or_(welcome)).to_be_visible()
    assert await page.evaluate("window.hacked") is None


async def test_injected_script_does_not_run(visitor: Visitor) -> None:
    page = await visitor.visit()
    blocked = await page.evaluate(
        """() => {
          try { document.body.innerHTML = "<img src=x onerror=hacked()>"; return false; }
          catch (error) { return error instanceof TypeError; }
        }"""
    )

    assert blocked
    assert any("TrustedHTML" in each for each in visitor.complaints)
    visitor.complaints.clear()
