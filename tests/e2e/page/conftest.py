"""The page in a real browser, before a service whose model says what the test wants."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser, Page, ViewportSize, async_playwright

from tests.integration.http.service import (  # noqa: F401 - fixtures
    Service,
    fresh_service,
    service_of_the_session,
)

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
    executable = next(filter(None, map(shutil.which, CHROMIUM)), None)
    assert executable, "Chromium is missing: install the package `chromium`."
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=executable, args=list(ARGUMENTS)
        )
        yield browser
        await browser.close()


READER = (Path(__file__).parent / "reader.js").read_text("utf-8")


class Visitor:
    """Somebody with a browser. At the end the page must have broken no rule of its own."""

    def __init__(self, browser: Browser, service: Service) -> None:
        self._browser = browser
        self.service = service
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
        """Open the page in a browser that knows nothing of it yet."""
        context = await self._browser.new_context(
            base_url=self.service.url,
            locale=language,
            color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
            viewport=size,
            permissions=["clipboard-read", "clipboard-write"],
        )
        context.set_default_timeout(10_000)
        self.page = await context.new_page()
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda m: self._hear(m.type, m.text))
        await self.page.goto(path)
        return self.page

    async def ask(self, question: str, *, wait: bool = True) -> None:
        """Ask, and wait for the whole answer."""
        turns = await self.page.locator(".turn").count()
        await self.page.get_by_role("textbox").fill(question)
        await self.page.keyboard.press("Enter")
        if wait:
            await self.page.locator(".turn").nth(turns).locator(".actions").wait_for()

    def _hear(self, kind: str, text: str) -> None:
        # The browser reports each answer of the service that is not 2xx; that is no fault.
        if kind in {"error", "warning"} and "Failed to load resource" not in text:
            self.complaints.append(text)


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(browser: Browser, service: Service) -> AsyncIterator[Visitor]:
    visitor = Visitor(browser, service)
    yield visitor
    await visitor.page.context.close()
    assert visitor.complaints == []


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def reader(browser: Browser, running_service: Service) -> AsyncIterator[Page]:
    """A page that reads Markdown for tests: `whole(text)`, and `grown(text, steps)`."""
    visitor = Visitor(browser, running_service)
    page = await visitor.visit()
    await page.evaluate(READER)
    yield page
    await page.context.close()
    assert visitor.complaints == []
