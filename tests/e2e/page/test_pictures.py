"""The page as the README shows it, in both themes.

    PICTURES=docs/images python -m pytest tests/e2e/page/test_pictures.py

writes the pictures there; otherwise they are only looked at.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, expect
from pydantic import SecretStr

from chatbot.settings import PROJECT, Settings
from serving.http import create_app
from tests.e2e.page.conftest import PHONE, Browsers, Guest
from tests.integration.http.running_app import running_app
from tests.servers.model import ChatRequest, ModelServer, Script, answer, call

pytestmark = pytest.mark.asyncio(loop_scope="session")

HANDBOOK = "员工手册 Employee Handbook"
FIRST, FOLLOW_UP = "How many days of annual leave do I have?", "And in my third year?"
REWRITTEN = "How many days of annual leave do employees have in their third year?"
CHINESE = "年假有几天？"
SAID = {
    CHINESE: """入职当年有 **10 天**带薪年假，第二年起 12 天，第五年起 15 天 [1]。

- 未休的年假最多可以结转 5 天，到次年 3 月 31 日失效 [1]。
- 三天以内提前三个工作日申请，更长的提前两周 [1]。
""",
    FIRST: "You have **10 days** in your first calendar year of service [1].",
    FOLLOW_UP: """In your third year you have **12 days** of paid annual leave [1]:

| Year of service | Days |
| --- | ---: |
| first | 10 |
| second to fourth | 12 |
| from the fifth | 15 |

- Up to five unused days are carried over; they expire on 31 March [1].
- Three days or less are requested three working days ahead, longer leave two weeks [1].
""",
}


SCROLL = """(place) => new Promise((scrolled) => {
  place.scrollIntoView();
  requestAnimationFrame(() => requestAnimationFrame(scrolled));
})"""


def _reply(request: ChatRequest) -> Script:
    if "knowledge_base" in request.tools:
        rewritten = CHINESE if CHINESE in request.question else REWRITTEN
        return call("knowledge_base", {"assistants": [HANDBOOK], "question": rewritten})
    asked = next(
        question for question in (CHINESE, FOLLOW_UP, FIRST) if question in request.question
    )
    return answer(SAID[asked], usage=(1843, 121), model="qwen-plus", wait=0.3)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The sample of documents with a model that knows them."""
    with ModelServer(_reply) as model:
        settings = Settings(
            chatbot_data_dir=tmp_path_factory.mktemp("data"),
            knowledge_dir=PROJECT / "examples" / "knowledge",
            openai_api_key=SecretStr("k"),
            openai_base_url=model.base_url,
            llm_model="qwen-plus",
        )
        with running_app(create_app(settings)) as url:
            yield url


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_pictures_of_the_page(
    browser: Browser, sample: str, tmp_path: Path, *, dark: bool
) -> None:
    folder = Path(os.environ.get("PICTURES") or tmp_path)
    theme = "dark" if dark else "light"
    guest = Guest(Browsers(browser, sample))
    page = await guest.visit(dark=dark)
    for question in (FIRST, FOLLOW_UP):
        await guest.ask(question)
    await _onto(page, page.locator(".asked").last)
    await page.locator(".turn").last.locator(".chip").first.click()
    await expect(page.get_by_role("dialog")).to_contain_text("31 March")
    await page.screenshot(path=folder / f"page-{theme}.png")
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Why this answer").last.click()
    await page.locator(".why .times").wait_for()
    await _onto(page, page.locator(".actions").last)
    await page.screenshot(path=folder / f"why-{theme}.png")
    await page.get_by_role("button", name="More for").click()
    await page.locator(".menu").get_by_text("Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(page.locator(".session")).to_have_count(0)
    await guest.leave()

    for name in ("page", "why"):
        assert (folder / f"{name}-{theme}.png").stat().st_size > 50_000


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_pictures_of_a_phone(
    browser: Browser, sample: str, tmp_path: Path, *, dark: bool
) -> None:
    folder = Path(os.environ.get("PICTURES") or tmp_path)
    picture = folder / f"phone-{'dark' if dark else 'light'}.png"
    guest = Guest(Browsers(browser, sample))
    page = await guest.visit(dark=dark, language="zh-CN", size=PHONE)
    await guest.ask(CHINESE)
    await _onto(page, page.locator(".asked").first)
    await page.screenshot(path=picture)
    await guest.leave()

    assert picture.stat().st_size > 20_000


async def _onto(page: Page, place: Locator) -> None:
    """Scroll a place to the top, and point at nothing; what scrolling closes is closed then."""
    await place.evaluate(SCROLL)
    await page.mouse.move(1270, 400)
