"""The page in a real browser, before a service whose model says what the test wants."""

import asyncio
import os
import shutil
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import (
    Browser,
    BrowserContext,
    Page,
    ViewportSize,
    async_playwright,
    expect,
)

from tests.integration.http.service import (  # noqa: F401 - fixtures
    Service,
    fresh_service,
    service_of_the_session,
)
from tests.integration.http.workers import workers
from tests.servers.loopback import Reply
from tests.servers.model import Brain, ChatRequest, Script, call, delta, event

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
DESK = ViewportSize(width=1280, height=800)
PHONE = ViewportSize(width=390, height=780)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    named = os.environ.get("CHROMIUM")
    executable = named or next(filter(None, map(shutil.which, CHROMIUM)), None)
    assert executable, "Chromium is missing: install it, or name its program in CHROMIUM."
    expect.set_options(timeout=20_000)  # its machine may have other work
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=executable, args=list(ARGUMENTS)
        )
        yield browser
        await browser.close()


# What is being answered would go on for others to meet.
LEAVE = """async () => {
  localStorage.clear();
  const id = new URLSearchParams(location.search).get("session");
  const address = `/api/sessions/${encodeURIComponent(id)}/stop`;
  if (id) await fetch(address, { method: "POST" }).catch(() => {});
}"""
READER = (Path(__file__).parent / "reader.js").read_text("utf-8")


class Browsers:
    """One browser per kind of visitor: what it has loaded once is quick the next time."""

    def __init__(self, browser: Browser, url: str) -> None:
        self._browser = browser
        self._url = url
        self._contexts: dict[str, BrowserContext] = {}

    async def like(self, *, language: str, dark: bool, size: ViewportSize) -> BrowserContext:
        kind = f"{language} {dark} {size}"
        if kind not in self._contexts:
            self._contexts[kind] = await self._browser.new_context(
                base_url=self._url,
                locale=language,
                color_scheme="dark" if dark else "light",
                reduced_motion="reduce",
                viewport=size,
                permissions=["clipboard-read", "clipboard-write"],
            )
        self._contexts[kind].set_default_timeout(30_000)
        self._contexts[kind].set_default_navigation_timeout(30_000)
        return self._contexts[kind]


class Guest:
    """Somebody with a browser. At the end the page must have broken no rule of its own."""

    def __init__(self, browsers: Browsers) -> None:
        self._browsers = browsers
        self.complaints: list[str] = []
        self.page: Page

    async def visit(
        self,
        path: str = "/",
        *,
        language: str = "en-US",
        dark: bool = False,
        size: ViewportSize = DESK,
    ) -> Page:
        """Open the page in a browser that remembers nothing of it."""
        context = await self._browsers.like(language=language, dark=dark, size=size)
        self.page = await context.new_page()
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda m: self._hear(m.type, m.text))
        await self.page.goto(path)
        return self.page

    async def leave(self) -> None:
        """Close the page and forget what it has stored."""
        await self.page.context.set_offline(offline=False)
        await self.page.evaluate(LEAVE)
        await self.page.close()
        await self.page.context.clear_cookies()
        assert self.complaints == []

    async def ask(self, question: str, *, wait: bool = True) -> None:
        """Ask, and wait for the whole answer."""
        turns = await self.page.locator(".turn").count()
        await self.page.locator("#question").fill(question)
        await self.page.keyboard.press("Enter")
        if wait:
            await self.page.locator(".turn").nth(turns).locator(".actions").wait_for()

    def _hear(self, kind: str, text: str) -> None:
        # The browser reports each answer of the service that is not 2xx; that is no fault.
        if kind in {"error", "warning"} and "Failed to load resource" not in text:
            self.complaints.append(text)


class Visitor(Guest):
    """A guest of the service whose model says what the test wants."""

    def __init__(self, browsers: Browsers, service: Service) -> None:
        super().__init__(browsers)
        self.service = service


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browsers(browser: Browser, running_service: Service) -> Browsers:
    return Browsers(browser, running_service.url)


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(browsers: Browsers, service: Service) -> AsyncIterator[Visitor]:
    visitor = Visitor(browsers, service)
    yield visitor
    await visitor.leave()


HALVES = "The first half", " and the second half."


@dataclass(frozen=True, kw_only=True)
class Kept:
    """Two workers over one real store; the second half of a slow answer waits for `go_on`."""

    urls: list[str]
    go_on: threading.Event


@pytest.fixture(scope="session")
def running_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    go_on = threading.Event()
    brain = Brain(
        routes={"slowly": call("general_chat"), "hello": call("general_chat")},
        route=call("knowledge_base", {"assistants": ["Handbook"], "question": "annual leave"}),
        answers={"slowly": _in_halves(go_on), "hello": "Hello! 你好！"},
        answer="25 days of leave [1].",
    )
    with workers(tmp_path_factory.mktemp("kept"), brain, count=2) as running:
        yield Kept(urls=[str(each.base_url) for each in running.clients], go_on=go_on)
        go_on.set()


@pytest.fixture
def kept(running_workers: Kept) -> Kept:
    running_workers.go_on.clear()
    return running_workers


def _in_halves(go_on: threading.Event) -> Script:
    async def script(_: ChatRequest, reply: Reply) -> None:
        await reply.start()
        await reply.chunk(event(delta(HALVES[0])))
        await asyncio.to_thread(go_on.wait, 60)
        await reply.chunk(event(delta(HALVES[1])) + event(delta(finish="stop")))
        await reply.end()

    return script


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def kept_browsers(browser: Browser, running_workers: Kept) -> Browsers:
    return Browsers(browser, running_workers.urls[0])


@pytest_asyncio.fixture(loop_scope="session")
async def guest(kept_browsers: Browsers, kept: Kept) -> AsyncIterator[Guest]:
    """Somebody before the first of the workers, whose conversations are kept."""
    del kept
    guest = Guest(kept_browsers)
    yield guest
    await guest.leave()


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def reader(browsers: Browsers, running_service: Service) -> AsyncIterator[Page]:
    """A page that reads Markdown for tests: `whole(text)`, and `grown(text, steps)`."""
    visitor = Visitor(browsers, running_service)
    page = await visitor.visit()
    await page.evaluate(READER)
    yield page
    await visitor.leave()
