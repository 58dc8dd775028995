"""What can be done with a question and its answer."""

import pytest
from playwright.async_api import expect

from chatbot.domain import Assistant
from tests.e2e.page.conftest import Visitor
from tests.integration.http.ports import says, stalls

pytestmark = pytest.mark.asyncio(loop_scope="session")

CHAT = "Just chat"
SEARCH = "Search the knowledge base instead"


@pytest.mark.parametrize(
    ("question", "button", "other", "intent"),
    [
        pytest.param("leave?", CHAT, SEARCH, "general_chat", id="chat instead"),
        pytest.param("hello", SEARCH, CHAT, "knowledge_base", id="search instead"),
    ],
)
async def test_one_click_takes_the_other_route(
    visitor: Visitor, question: str, button: str, other: str, intent: str
) -> None:
    page = await visitor.visit()
    await visitor.ask(question)
    await page.get_by_role("button", name=button).click()
    await expect(page.get_by_role("button", name=other)).to_be_visible()
    await page.locator(".actions").wait_for()

    await expect(page.locator(".turn")).to_have_count(1)
    (turns,) = visitor.service.history.turns.values()
    assert [turn.question for turn in turns] == [question, question]
    assert turns[1].intent == intent
    assert turns[1].record["replaces"] == turns[0].id


async def test_other_route_is_taken_at_once_while_an_answer_is_written(
    visitor: Visitor,
) -> None:
    visitor.service.model.script = stalls("A long answer")
    page = await visitor.visit()
    await visitor.ask("leave?", wait=False)
    await expect(page.locator(".prose")).to_have_text("A long answer")
    visitor.service.model.script = says("A short one.")
    await page.get_by_role("button", name=CHAT).click()

    await expect(page.locator(".prose")).to_have_text("A short one.")
    (turns,) = visitor.service.history.turns.values()
    assert [turn.status for turn in turns] == ["stopped", "complete"]


async def test_chosen_assistants_alone_are_asked(visitor: Visitor) -> None:
    visitor.service.knowledge.known = [
        Assistant(id="a1", name="Handbook", description="Leave."),
        Assistant(id="a2", name="瓦尔登湖", description="湖。"),
    ]
    page = await visitor.visit()
    await page.get_by_role("button", name="Where to look").click()
    await expect(page.get_by_role("checkbox", name="All knowledge")).to_be_checked()
    await page.get_by_role("checkbox", name="瓦尔登湖").check()
    await expect(page.get_by_role("checkbox", name="All knowledge")).not_to_be_checked()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("checkbox")).to_have_count(0)
    await visitor.ask("leave?")

    await expect(page.locator(".way")).to_contain_text("Searched 瓦尔登湖")


async def test_answer_is_copied(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    await page.get_by_role("button", name="Copy").click()

    await expect(page.locator(".actions")).to_contain_text("Copied")
    assert await page.evaluate("navigator.clipboard.readText()") == "25 days of leave [1]."


async def test_last_answer_is_replaced_by_a_new_one(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    visitor.service.model.script = says("Another answer.")
    await page.get_by_role("button", name="Answer again").click()

    await expect(page.locator(".prose")).to_have_text("Another answer.")
    await expect(page.locator(".actions")).to_have_count(1)
    await page.reload()
    await expect(page.locator(".prose")).to_have_text("Another answer.")


async def test_earlier_question_is_answered_again_behind_the_others(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    await visitor.ask("hello")
    await page.get_by_role("button", name="Answer again").first.click()
    await page.locator(".actions").nth(2).wait_for()

    asked = await page.locator(".asked").all_inner_texts()
    assert [text.strip() for text in asked] == ["leave?", "hello", "leave?"]


async def test_question_is_edited_in_its_place(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    await visitor.ask("hello")
    await page.locator(".turn").first.hover()
    await page.get_by_role("button", name="Edit the question").first.click()
    field = page.get_by_role("textbox", name="Edit the question")
    await expect(field).to_have_value("leave?")
    await page.keyboard.press("Escape")
    await expect(page.locator(".turn")).to_have_count(2)
    await page.get_by_role("button", name="Edit the question").first.click()
    await field.fill("pay?")
    await page.keyboard.press("Enter")
    await page.locator(".actions").wait_for()

    await expect(page.locator(".asked")).to_have_text("pay?")
    await page.reload()
    await expect(page.locator(".asked")).to_have_text("pay?")


async def test_edited_question_is_routed_anew(visitor: Visitor) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    await page.get_by_role("button", name=CHAT).click()
    await expect(page.get_by_role("button", name=SEARCH)).to_be_visible()
    await page.locator(".actions").wait_for()
    await page.get_by_role("button", name="Edit the question").click()
    await page.get_by_role("textbox", name="Edit the question").fill("pay?")
    await page.keyboard.press("Enter")
    await page.locator(".actions").wait_for()

    await expect(page.locator(".asked")).to_have_text("pay?")
    await expect(page.get_by_role("button", name=CHAT)).to_be_visible()
    (turns,) = visitor.service.history.turns.values()
    assert [turn.record["choices"].get("route") for turn in turns] == [
        None,
        "general_chat",
        None,
    ]


async def test_what_should_be_replaced_stays_where_nothing_takes_its_place(
    visitor: Visitor,
) -> None:
    page = await visitor.visit()
    await visitor.ask("leave?")
    await page.context.set_offline(offline=True)
    await page.get_by_role("button", name="Answer again").click()
    await expect(page.get_by_role("alert")).to_contain_text("The service cannot be reached.")
    await expect(page.locator(".prose").first).to_contain_text("25 days of leave")
    await page.context.set_offline(offline=False)
    visitor.service.model.script = says("Another answer.")
    await page.get_by_role("button", name="Try again").click()

    await expect(page.locator(".prose")).to_have_text("Another answer.")
