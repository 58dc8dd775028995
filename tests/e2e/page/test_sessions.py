"""The conversations at the side: found, renamed, taken along and brought back."""

import json
from pathlib import Path

import pytest
from playwright.async_api import FilePayload, Page, expect

from tests.e2e.page.conftest import PHONE, Guest

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def choose(page: Page, title: str, choice: str) -> None:
    await page.locator(".session", has_text=title).hover()
    await page.get_by_role("button", name=f"More for “{title}”").click()
    await page.locator(".menu").get_by_text(choice).click()


async def bring(page: Page, name: str, data: bytes) -> None:
    async with page.expect_file_chooser() as choosing:
        await page.get_by_role("button", name="Import a conversation").click()
    file = FilePayload(name=name, mimeType="application/json", buffer=data)
    await (await choosing.value).set_files([file])


async def test_conversation_is_renamed(guest: Guest) -> None:
    page = await guest.visit("/?session=renamed")
    await guest.ask("How is it called?")
    await choose(page, "How is it called?", "Rename")
    field = page.get_by_role("textbox", name="Rename the conversation")
    await expect(field).to_have_value("How is it called?")
    await field.fill("假期 <b>")
    await page.keyboard.press("Enter")

    await expect(page.locator(".session a", has_text="假期 <b>")).to_be_visible()
    await expect(page.locator(".bar h1")).to_have_text("假期 <b>")
    await choose(page, "假期 <b>", "Rename")
    await field.fill("  ")
    await page.keyboard.press("Enter")
    await page.keyboard.press("Escape")
    await page.reload()
    await expect(page.locator(".bar h1")).to_have_text("假期 <b>")


async def test_conversation_is_taken_along_and_brought_back(
    guest: Guest, tmp_path: Path
) -> None:
    page = await guest.visit("/?session=taken")
    await guest.ask("Take my days of leave along?")
    async with page.expect_download() as downloading:
        await choose(page, "Take my days of leave along?", "Export")
    download = await downloading.value
    await download.save_as(tmp_path / "taken.json")
    data = json.loads((tmp_path / "taken.json").read_text("utf-8"))
    assert download.suggested_filename == "taken.json"
    assert data["turns"][0]["question"] == "Take my days of leave along?"

    await choose(page, "Take my days of leave along?", "Delete")
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(
        page.locator(".session", has_text="Take my days of leave along?")
    ).to_have_count(0)
    await bring(page, "taken.json", json.dumps(data).encode())
    await expect(page.locator(".asked")).to_have_text("Take my days of leave along?")
    await expect(page.locator(".chip")).to_have_count(1)
    await guest.ask("And then?")
    data["turns"][0]["id"] = "another"
    await bring(page, "taken.json", json.dumps(data).encode())
    await expect(
        page.locator(".session", has_text="Take my days of leave along?")
    ).to_have_count(2)


@pytest.mark.parametrize(
    "data", [b"not json", b'{"format": "else"}', b"[]"], ids=["no JSON", "other JSON", "a list"]
)
async def test_file_that_is_no_conversation_is_told(guest: Guest, data: bytes) -> None:
    page = await guest.visit()
    await bring(page, "notes.json", data)

    told = page.locator(".sidebar .refused")
    await expect(told).to_contain_text("“notes.json” could not be imported.")
    await page.get_by_role("button", name="切换到中文").click()
    await expect(told).to_contain_text("无法导入“notes.json”。")
    await expect(told).not_to_contain_text("{")


async def test_conversation_is_found_by_title_and_by_what_was_said(guest: Guest) -> None:
    page = await guest.visit("/?session=found")
    for question in ("What about porcupines?", "hello", "And hedgehogs?", "再问一次刺猬"):
        await guest.ask(question)
    await page.get_by_role("button", name="New conversation").click()
    await page.keyboard.press("Control+k")
    field = page.get_by_role("searchbox", name="Search conversations")
    await expect(field).to_be_focused()
    await field.fill("PORCUPINES")
    await expect(page.locator(".match mark").first).to_have_text("porcupines")
    await expect(page.locator(".match")).to_have_count(2)

    await field.fill("刺猬")
    match = page.locator(".match", has_text="刺猬")
    await expect(match).to_contain_text("What about porcupines?")
    await field.fill("hedgehogs")
    await page.locator(".match a").click()
    await expect(page.locator(".turn.found .asked")).to_have_text("And hedgehogs?")
    await expect(page.locator(".turn.found .asked")).to_be_in_viewport()
    await field.fill("nobody said this")
    await expect(page.locator(".sidebar .empty")).to_have_text("Nothing was found.")
    await page.keyboard.press("Escape")
    await expect(page.locator(".session", has_text="porcupines")).to_have_count(1)


async def test_menu_is_used_by_keyboard(guest: Guest) -> None:
    page = await guest.visit("/?session=keys")
    await guest.ask("By keyboard alone?")
    more = page.get_by_role("button", name="More for “By keyboard alone?”")
    await more.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("button", name="Rename")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(more).to_be_focused()
    await expect(page.locator(".menu")).to_have_count(0)


async def test_conversation_is_listed_while_its_first_answer_is_written(guest: Guest) -> None:
    page = await guest.visit()
    await guest.ask("slowly", wait=False)
    row = page.locator(".session[data-running]", has_text="slowly")
    await expect(row).to_be_visible()
    await expect(row.locator("a")).to_have_attribute("aria-current", "page")
    await page.get_by_role("button", name="Stop the answer").click()

    await expect(page.locator(".session[data-running]")).to_have_count(0)


async def test_side_of_a_phone_is_searched(guest: Guest) -> None:
    page = await guest.visit("/?session=phone", size=PHONE)
    await guest.ask("On the phone?")
    await page.get_by_role("button", name="Show conversations").click()
    await page.get_by_role("searchbox").fill("on the phone")
    await page.locator(".match a").first.click()

    await expect(page.locator(".sidebar")).not_to_be_visible()
    await expect(page.locator(".asked")).to_have_text("On the phone?")
