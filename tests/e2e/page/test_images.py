"""Images on the page: attached, shown with their question, and again after a reload."""

import os
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import FilePayload, Locator, Page, expect

from chatbot.images.image import image_of
from chatbot.settings import Settings
from graphs import Chatbot, Ports
from serving.http import create_app
from tests.e2e.page.conftest import DESK, Browsers, Visitor
from tests.integration.http.ports import InMemoryChatHistory, InMemoryKnowledgeBase, scripted
from tests.integration.http.running_app import running_app
from tests.integration.http.service import LONGEST_IMAGE, quotes

pytestmark = pytest.mark.asyncio(loop_scope="session")


def png(side: int, *, noisy: bool = False) -> bytes:
    """Return a square image of one colour, or of none."""
    row = b"\0" + (os.urandom(3 * side) if noisy else b"\x1d\x6b\x57" * side)
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"".join(row for _ in range(side)), 0 if noisy else 9)
    parts = ((b"IHDR", head), (b"IDAT", rows), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


SMALL, OTHER, LARGE = png(40), png(50), png(1200, noisy=True)


def file(name: str, data: bytes, kind: str = "image/png") -> FilePayload:
    return FilePayload(name=name, mimeType=kind, buffer=data)


async def attach(page: Page, *files: FilePayload) -> None:
    async with page.expect_file_chooser() as choosing:
        await page.get_by_role("button", name="Add an image").click()
    await (await choosing.value).set_files(list(files))


def previews(page: Page) -> Locator:
    return page.locator(".attachments img")


def images_asked(visitor: Visitor) -> list[str]:
    content: Any = visitor.service.model.asked[-1][-1].content
    blocks = [] if isinstance(content, str) else content
    return [block["image_url"]["url"] for block in blocks if block["type"] == "image_url"]


async def loaded(image: Locator) -> None:
    """Return when the image is shown, which takes one that can be read."""
    await expect(image).to_be_visible()
    await expect(image).to_have_js_property("complete", value=True)
    assert await image.evaluate("(image) => image.naturalWidth") > 1


async def test_an_image_is_chosen_sent_and_there_after_a_reload(visitor: Visitor) -> None:
    page = await visitor.visit()
    await attach(page, file("a.png", SMALL), file("b.png", OTHER))
    await expect(previews(page)).to_have_count(2)
    await page.get_by_role("button", name="Remove image 2").click()
    await expect(previews(page)).to_have_count(1)
    await visitor.ask("hello")
    await expect(previews(page)).to_have_count(0)
    url = image_of(SMALL, LONGEST_IMAGE).data_url()
    assert images_asked(visitor) == [url]

    await page.reload()
    await loaded(page.locator(".asked img"))
    await page.get_by_role("button", name="Answer again").click()
    await page.locator(".actions").wait_for()
    await expect(page.locator(".turn")).to_have_count(1)
    assert images_asked(visitor) == [url]

    await page.get_by_role("button", name="Open image 1").click()
    await loaded(page.get_by_role("dialog").locator("img"))
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_an_edited_question_keeps_its_images_or_drops_them(visitor: Visitor) -> None:
    page = await visitor.visit()
    await attach(page, file("a.png", SMALL))
    await visitor.ask("hello")
    for step, count in (("keep", 1), ("drop", 0)):
        await page.locator(".asked").hover()
        await page.get_by_role("button", name="Edit the question").click()
        if step == "drop":
            await page.locator(".editor").get_by_role("button", name="Remove image 1").click()
        await page.locator(".editor textarea").fill(f"hello, {step}")
        await page.locator(".editor").get_by_role("button", name="Send").click()
        await expect(page.locator(".asked p")).to_have_text(f"hello, {step}")
        await page.locator(".actions").wait_for()
        await expect(page.locator(".asked img")).to_have_count(count)
        assert len(images_asked(visitor)) == count


TRANSFER = """async ([selector, type, bytes, text]) => {
  const transfer = new DataTransfer();
  transfer.items.add(new File([new Uint8Array(bytes)], "a.png", { type: "image/png" }));
  if (text) transfer.setData("text/plain", text);
  const given = type === "paste" ? { clipboardData: transfer } : { dataTransfer: transfer };
  const options = { bubbles: true, cancelable: true, ...given };
  const Kind = type === "paste" ? ClipboardEvent : DragEvent;
  document.querySelector(selector).dispatchEvent(new Kind(type, options));
}"""


async def test_images_are_pasted_and_dropped(visitor: Visitor) -> None:
    page = await visitor.visit()
    await page.evaluate(TRANSFER, ["textarea", "paste", list(SMALL), ""])
    await expect(previews(page)).to_have_count(1)
    await page.evaluate(TRANSFER, ["textarea", "paste", list(SMALL), "words beside it"])
    await page.evaluate(TRANSFER, [".scroll", "dragover", list(SMALL), ""])
    await expect(page.locator(".composer[data-drop]")).to_have_count(1)
    await page.evaluate(TRANSFER, [".scroll", "drop", list(OTHER), ""])
    await expect(previews(page)).to_have_count(2)
    await expect(page.locator(".composer[data-drop]")).to_have_count(0)


async def test_a_large_image_is_made_smaller(visitor: Visitor) -> None:
    page = await visitor.visit()
    assert len(LARGE) > LONGEST_IMAGE
    await attach(page, file("photo.png", LARGE))
    await visitor.ask("hello")
    [url] = images_asked(visitor)
    assert url.startswith("data:image/jpeg;")


async def test_what_cannot_go_with_a_question_is_told(visitor: Visitor) -> None:
    page = await visitor.visit()
    told = page.locator(".composer .refused")
    await attach(page, file("notes.txt", b"words", "text/plain"))
    await expect(told).to_have_text(
        "“notes.txt” is no image that can be read, or larger than 1.9 MB."
    )
    await attach(page, *(file(f"{n}.png", SMALL) for n in range(3)))
    await expect(told).to_have_text("A question can have at most 2 images.")
    await expect(previews(page)).to_have_count(2)
    await page.get_by_role("button", name="Remove image 1").click()
    await expect(told).to_be_hidden()


async def test_an_image_of_the_answer_is_shown(visitor: Visitor) -> None:
    page = await visitor.visit()
    visitor.service.model.drawings = [image_of(SMALL, LONGEST_IMAGE).data_url()]
    await visitor.ask("hello")
    await loaded(page.locator(".prose img"))
    await page.reload()
    await loaded(page.locator(".prose img"))
    visitor.service.history.images.clear()
    await page.reload()
    await expect(page.locator(".prose")).to_contain_text("This image is no longer kept.")


async def test_without_a_model_that_sees_an_image_is_refused(browsers: Browsers) -> None:
    model = scripted(quotes, hello="general_chat")

    @asynccontextmanager
    async def open_bot(_: Settings | None) -> AsyncIterator[Chatbot]:
        history, knowledge = InMemoryChatHistory(), InMemoryKnowledgeBase()
        yield Chatbot(Ports(history=history, knowledge=knowledge, model=model))

    with running_app(create_app(Settings(), open_bot=open_bot)) as url:
        context = await browsers.like(language="en-US", dark=False, size=DESK)
        page = await context.new_page()
        await page.goto(url)
        await expect(page.get_by_role("button", name="Add an image")).to_be_hidden()
        await page.evaluate(TRANSFER, [".scroll", "drop", list(SMALL), ""])
        told = page.locator(".composer .refused")
        await expect(told).to_have_text("The language model that is set cannot read images.")
        await expect(previews(page)).to_have_count(0)
        await page.close()
