"""Where users sign in: the page asks, forgets the key, and shows nobody what is another's."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect

from chatbot.settings import Settings
from graphs import Chatbot, Ports
from serving.auth.keys import create_key
from serving.http import create_app
from tests.e2e.page.conftest import Browsers, Guest
from tests.integration.http.ports import InMemoryChatHistory, InMemoryKnowledgeBase, scripted
from tests.integration.http.running_app import running_app
from tests.integration.http.service import HANDBOOK, PASSAGE, quotes

pytestmark = pytest.mark.asyncio(loop_scope="session")


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """A service where users sign in, and a key for each of them."""

    url: str
    keys: dict[str, str]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("keys")
    keys = {user: create_key(folder, user) for user in ("ann", "bob", "carla", "dora", "often")}
    ports = Ports(
        history=InMemoryChatHistory(),
        knowledge=InMemoryKnowledgeBase([HANDBOOK], [PASSAGE]),
        model=scripted(quotes, hello="general_chat"),
    )

    @asynccontextmanager
    async def open_bot(_: Settings | None) -> AsyncIterator[Chatbot]:
        yield Chatbot(ports)

    settings = Settings(auth_keys_dir=folder, turns_per_minute=3)
    with running_app(create_app(settings, open_bot=open_bot)) as url:
        yield Guarded(url=url, keys=keys)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def their_browsers(browser: Browser, guarded: Guarded) -> Browsers:
    return Browsers(browser, guarded.url)


@pytest_asyncio.fixture(loop_scope="session")
async def stranger(their_browsers: Browsers) -> AsyncIterator[Guest]:
    guest = Guest(their_browsers)
    yield guest
    await guest.leave()


async def enter(page: Page, key: str) -> None:
    await page.get_by_label("Access key").fill(key)
    await page.keyboard.press("Enter")


async def sign_in(page: Page, key: str) -> None:
    await enter(page, key)
    await expect(page.locator("dialog.sign-in")).to_have_count(0)


async def test_key_is_asked_for_and_kept_where_no_script_can_read_it(
    stranger: Guest, guarded: Guarded
) -> None:
    key = guarded.keys["ann"]
    page = await stranger.visit()
    dialog = page.get_by_role("dialog", name="Sign in")
    await expect(page.get_by_label("Access key")).to_be_focused()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Escape")
    await expect(dialog).to_be_visible()
    await enter(page, "wrong")
    await expect(dialog.get_by_role("alert")).to_have_text(
        "This key is not known, or no longer valid."
    )
    await sign_in(page, key)
    await expect(dialog).to_have_count(0)
    await expect(page.locator(".account")).to_contain_text("ann")
    await expect(page.get_by_role("button", name="pay and benefits")).to_be_visible()
    await stranger.ask("leave?")

    stored = (
        "[document.cookie, ...Object.values(localStorage), ...Object.values(sessionStorage)]"
    )
    assert key not in " ".join(await page.evaluate(stored))
    assert key not in await page.content()
    (cookie,) = await page.context.cookies()
    assert (cookie["value"], cookie["httpOnly"], cookie["sameSite"]) == (key, True, "Strict")
    await page.reload()
    await expect(page.locator(".prose")).to_contain_text("25 days")
    await page.get_by_role("button", name="Sign out").click()
    await expect(dialog).to_be_visible()
    assert await page.context.cookies() == []
    await expect(page.locator(".turn")).to_have_count(0)


async def test_question_is_asked_once_somebody_signed_in_again(
    stranger: Guest, guarded: Guarded
) -> None:
    page = await stranger.visit("/?session=again")
    await sign_in(page, guarded.keys["bob"])
    await expect(page.locator(".account")).to_contain_text("bob")
    await page.reload(wait_until="networkidle")  # nothing else is asked without the cookie
    await page.context.clear_cookies()
    await stranger.ask("leave?", wait=False)
    await sign_in(page, guarded.keys["bob"])

    await expect(page.locator(".prose")).to_contain_text("25 days")


async def test_a_refusal_that_comes_late_asks_nobody_again(
    stranger: Guest, guarded: Guarded
) -> None:
    page = await stranger.visit()
    await sign_in(page, guarded.keys["bob"])
    signed_in = asyncio.Event()

    async def late(route: Route) -> None:
        refusal = await route.fetch()
        await signed_in.wait()
        await route.fulfill(response=refusal)

    await page.context.clear_cookies()
    await page.route("**/api/suggestions*", late, times=1)
    await page.reload()
    await sign_in(page, guarded.keys["bob"])
    signed_in.set()

    await expect(page.get_by_role("button", name="pay and benefits")).to_be_visible()
    await expect(page.locator("dialog.sign-in")).to_have_count(0)


async def test_somebody_else_who_signs_in_sees_nothing_of_it(
    stranger: Guest, guarded: Guarded
) -> None:
    page = await stranger.visit("/?session=mine")
    await sign_in(page, guarded.keys["carla"])
    await stranger.ask("leave?")
    await page.context.clear_cookies()
    await page.get_by_role("button", name="Good answer").click()
    await sign_in(page, guarded.keys["dora"])

    await expect(page.locator(".account")).to_contain_text("dora")
    await expect(page.get_by_text("What would you like to know?")).to_be_visible()
    await expect(page.locator(".turn, .session")).to_have_count(0)


async def test_limit_is_told_with_the_seconds_to_wait(
    stranger: Guest, guarded: Guarded
) -> None:
    page = await stranger.visit()
    await sign_in(page, guarded.keys["often"])
    for _ in range(3):
        await stranger.ask("hello")
    await stranger.ask("hello", wait=False)
    alert = page.get_by_role("alert").filter(has_text="3 questions a minute")
    await expect(alert).to_be_visible()

    await expect(alert.get_by_role("button", name="Try again in")).to_be_disabled()
    await page.get_by_role("button", name="切换到中文").click()
    await expect(page.locator(".failure")).to_contain_text("提问过于频繁，请稍后再试。")
