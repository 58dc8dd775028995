"""Images of a question reach a model that sees, and stay with the conversation."""

import base64
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage, HumanMessage

from chatbot.domain import Session, Turn
from chatbot.errors import ChatbotError, HistoryError, ImageError, ModelError
from chatbot.events import Event
from chatbot.images.blocks import block_of
from chatbot.images.image import Image, image_of
from chatbot.images.policy import ImagePolicy
from graphs import Chatbot
from graphs.state import Context
from tests.integration.graph.conftest import Bench
from tests.ports import Call, Said
from tests.servers.loopback import Loopback, Reply, Request

CHAT = Said(call=Call("general_chat"))
LIMIT = 10_000


def png(text: str) -> Image:
    return image_of(b"\x89PNG\r\n\x1a\n" + text.encode(), LIMIT)


ONE, TWO, THREE = png("one"), png("two"), png("three")


async def give_picture(request: Request, reply: Reply) -> None:
    await reply.send(TWO.data, status=200 if request.path == "/two.png" else 404)


@pytest.fixture(scope="module")
def pictures() -> Iterator[Loopback]:
    with Loopback(give_picture) as server:
        yield server


@pytest.fixture
def bot(bench: Bench, pictures: Loopback) -> Chatbot:
    own = frozenset({f"127.0.0.1:{pictures.port}"})
    policy = ImagePolicy(private_hosts=own, longest=LIMIT, most=2)
    return bench.bot_with(sees_images=True, images=bench.history, image_policy=policy)


def shown(message: BaseMessage) -> list[Any]:
    """Return the images of a message."""
    content = message.content
    return [block for block in content if isinstance(block, dict) and block["type"] != "text"]


def blocks(*images: Image) -> list[Any]:
    return [block_of(image.data_url()) for image in images]


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(ONE.data_url(), id="a data URL"),
        pytest.param(ONE.data_url().replace("png", "jpeg"), id="called something else"),
        pytest.param(ONE.data, id="bytes"),
        pytest.param(Path("one.png"), id="a file"),
    ],
)  # fmt: skip
async def test_an_image_goes_to_the_model_and_is_kept(
    bench: Bench, bot: Chatbot, tmp_path: Path, given: Any
) -> None:
    bench.script(CHAT, Said(["A pixel."]))
    if isinstance(given, Path):
        given = tmp_path / given
        given.write_bytes(ONE.data)
    answer = await bot.ask("What is this?", images=[given], session_id="s")
    assert answer.text == "A pixel."
    asked, prompt = bench.model.prompts[0][-1], bench.model.prompts[1][-1]
    assert asked.content == "What is this?\n[image]"  # the router sees no image
    assert prompt.content == [{"type": "text", "text": "What is this?"}, *blocks(ONE)]
    [turn] = await bot.turns("s")
    assert (turn.question, turn.record["images"]) == ("What is this?", [ONE.name])
    assert await bot.image(ONE.name) == ONE
    assert await bot.image(ONE.name, user_id="bob") is None
    assert answer.metadata["images"] == [ONE.address]


async def test_an_image_is_fetched_for_the_model(
    bench: Bench, bot: Chatbot, pictures: Loopback
) -> None:
    bench.script(CHAT, Said(["Two."]))
    await bot.ask("What is this?", images=[f"{pictures.url}/two.png"])
    assert shown(bench.model.prompts[1][-1]) == blocks(TWO)


async def test_an_image_in_the_message_of_another_client_counts(
    bench: Bench, bot: Chatbot
) -> None:
    bench.script(CHAT, Said(["One."]))
    message = HumanMessage([{"type": "text", "text": "What is this?"}, *blocks(ONE)])
    result = await bot.graph.ainvoke({"messages": [message]}, context=Context(session_id="s"))
    assert result["messages"][-1].content == "One."
    assert shown(bench.model.prompts[1][-1]) == blocks(ONE)


async def test_no_step_repeats_the_images(bench: Bench, bot: Chatbot) -> None:
    bench.script(CHAT, Said(["One."]))
    message = HumanMessage([{"type": "text", "text": "What is this?"}, *blocks(ONE)])
    updates = [
        update
        async for update in bot.graph.astream(
            {"messages": [message]}, context=Context(session_id="s"), stream_mode="updates"
        )
    ]
    assert len(updates) > 3
    assert ONE.data_url() not in str(updates)


@pytest.mark.parametrize(
    ("images", "code"),
    [
        pytest.param([ONE.data_url()] * 3, "image_too_many", id="too many"),
        pytest.param([b"\x89PNG\r\n\x1a\n" + b"." * LIMIT], "image_too_large", id="too large"),
        pytest.param([b"<svg/>"], "image_wrong_type", id="no image"),
        pytest.param(["data:image/png;base64,AAAA"], "image_wrong_type", id="no image inside"),
        pytest.param(["http://127.0.0.1/x.png"], "image_not_allowed", id="a private address"),
        pytest.param(["/etc/passwd"], "image_not_allowed", id="a path as text"),
        pytest.param(
            [Path("/nowhere.png")], "image_unreachable", id="a file that is not there"
        ),
        pytest.param([THREE.address], "image_gone", id="one that is not kept"),
        pytest.param(["/api/images/../x"], "image_not_allowed", id="an address of ours"),
    ],
)
async def test_an_image_is_refused_before_any_call(
    bench: Bench, bot: Chatbot, images: Any, code: str
) -> None:
    with pytest.raises(ImageError) as caught:
        await bot.ask("What is this?", images=images, session_id="s")
    assert caught.value.code == code
    events = [event async for event in bot.stream("?", images=images, session_id="s")]
    assert [event["data"]["code"] for event in events if event["type"] == "error"] == [code]
    assert bench.model.prompts == []
    assert await bot.turns("s") == []


async def test_a_model_that_is_blind_is_not_asked(bench: Bench) -> None:
    with pytest.raises(ModelError, match="cannot read images") as caught:
        await bench.bot.ask("What is this?", images=[ONE.data])
    assert caught.value.code == "model_unsupported"
    assert bench.model.prompts == []


async def test_an_image_of_another_user_is_not_there(bench: Bench, bot: Chatbot) -> None:
    await bench.history.keep_image(Session(session_id="s", user_id="ann"), ONE)
    with pytest.raises(ImageError, match="no longer kept"):
        await bot.ask("What is this?", images=[ONE.address], user_id="bob")


async def test_a_question_is_asked_again_with_its_images(bench: Bench, bot: Chatbot) -> None:
    bench.script(CHAT, Said(["first"]))
    await bot.ask("What is this?", images=[ONE.data], session_id="s")
    actions: list[tuple[Callable[[str], AsyncIterator[Event]], list[Image]]] = [
        (lambda turn: bot.regenerate("s", turn), [ONE]),
        (lambda turn: bot.edit("s", turn, "And this?"), [ONE]),
        (lambda turn: bot.edit("s", turn, "And now?", images=[TWO.data]), [TWO]),
        (lambda turn: bot.edit("s", turn, "And without?", images=[]), []),
    ]
    for number, (action, images) in enumerate(actions):
        bench.script(CHAT, Said([f"again {number}"]))
        [turn] = await bot.turns("s")
        events = [event async for event in action(turn.id)]
        assert events[-1]["data"]["full_answer"] == f"again {number}"
        assert shown(bench.model.prompts[-1][-1]) == blocks(*images)
        [turn] = await bot.turns("s")
        assert turn.record.get("images", []) == [image.name for image in images]


async def test_the_images_of_the_last_questions_are_shown_again(
    bench: Bench, bot: Chatbot
) -> None:
    for question, images in (
        ("first", [ONE]),
        ("second", [TWO]),
        ("third", []),
        ("fourth", []),
        ("fifth", []),
    ):
        bench.script(CHAT, Said([f"answer to the {question}"]))
        data = [image.data for image in images]
        await bot.ask(question, images=data, session_id="s")
    asked = [m for m in bench.model.prompts[-1] if isinstance(m, HumanMessage)]
    assert [shown(message) for message in asked] == [[], blocks(TWO), [], [], []]
    assert asked[0].content == "first\n[image]"
    assert not any(map(shown, bench.model.prompts[-2]))  # the router's


async def test_a_follow_up_is_answered_although_nothing_sees_at_the_moment(
    bench: Bench, bot: Chatbot
) -> None:
    bench.script(CHAT, Said(["One."]))
    await bot.ask("What is this?", images=[ONE.data], session_id="s")
    away = ModelError("connection", "The endpoint that sees cannot be reached.")
    bench.script(CHAT, Said(error=away), Said(["It was one."]))
    answer = await bot.ask("And what was it?", session_id="s")
    assert answer.text == "It was one."
    assert [entry["part"] for entry in answer.metadata["degraded"]] == ["images"]
    assert bench.model.prompts[-1][1].content == "What is this?\n[image]"
    bench.script(CHAT, Said(error=away))
    with pytest.raises(ModelError, match="cannot be reached"):
        await bot.ask("And this?", images=[TWO.data], session_id="s")
    assert bench.used_up()


@pytest.mark.parametrize(
    "call",
    [
        pytest.param('{"question": "benefits in this picture [image]"}', id="by the router"),
        pytest.param("{}", id="by a call of its own"),
    ],
)
async def test_nothing_searches_for_the_note_of_an_image(
    bench: Bench, bot: Chatbot, call: str
) -> None:
    bench.script(CHAT, Said(["so"]), Said(call=Call("knowledge_base", call)))
    if call == "{}":
        bench.script(Said(["benefits in this picture\n[image]"]))
    bench.script(Said(["15 days [1]."]))
    await bot.ask("hi", session_id="s")
    answer = await bot.ask("And its benefits?", images=[ONE.data], session_id="s")
    assert answer.metadata["enhanced_query"] == "benefits in this picture"
    assert shown(bench.model.prompts[-1][-1]) == blocks(ONE)


async def test_the_images_of_a_request_are_limited(bench: Bench, bot: Chatbot) -> None:
    for question, images in (("first", [ONE, TWO]), ("second", [THREE])):
        bench.script(CHAT, Said(["so"]))
        data = [image.data for image in images]
        await bot.ask(question, images=data, session_id="s")
    asked = [m for m in bench.model.prompts[-1] if isinstance(m, HumanMessage)]
    assert [shown(message) for message in asked] == [blocks(ONE), blocks(THREE)]


@pytest.mark.parametrize(
    "images", [pytest.param([ONE.name], id="gone"), pytest.param(1, id="of an older record")]
)
async def test_images_that_are_not_kept_are_a_note(
    bench: Bench, bot: Chatbot, images: Any
) -> None:
    bench.script(CHAT, Said(["so"]))
    earlier = Turn(
        id="1",
        question="earlier",
        answer="so",
        started_at=datetime.now(UTC),
        record={"images": images},
    )
    await bench.history.save(Session(session_id="s"), earlier)
    await bot.ask("second", session_id="s")
    asked = [m for m in bench.model.prompts[-1] if isinstance(m, HumanMessage)]
    assert [message.content for message in asked] == ["earlier\n[image]", "second"]


async def test_images_of_the_answer_are_kept_and_shown(
    bench: Bench, bot: Chatbot, pictures: Loopback
) -> None:
    made = [ONE.data_url(), f"{pictures.url}/two.png"]
    bench.script(CHAT, Said(["Here they are."], images=made), CHAT, Said(["so"]))
    answer = await bot.ask("Draw", session_id="s")
    assert answer.text == (
        f"\n\n![]({ONE.address})\n\n\n\n![]({TWO.address})\n\nHere they are."
    )
    assert await bot.image(TWO.name) == TWO
    await bot.ask("And?", session_id="s")
    assert "/api/images" not in str(bench.model.prompts[-1])
    assert "[image]" in str(bench.model.prompts[-1][-2].content)
    await bot.clear("s")
    assert await bot.image(TWO.name) is None


@pytest.mark.parametrize(
    ("url", "text"),
    [
        pytest.param(
            "https://elsewhere.test/a.png?x=1",
            "\n\n[elsewhere.test](https://elsewhere.test/a.png?x=1)\n\nHere.",
            id="a host nobody named",
        ),
        pytest.param("javascript:alert(1)", "Here.", id="no address"),
        pytest.param("https://x.test/a) [b](c", "Here.", id="no address of a link"),
        pytest.param("data:image/svg+xml;base64,AAAA", "Here.", id="a drawing"),
    ],
)
async def test_images_of_the_answer_that_cannot_be_kept_are_told(
    bench: Bench, bot: Chatbot, url: str, text: str
) -> None:
    bench.script(CHAT, Said(["Here."], images=[url]))
    answer = await bot.ask("Draw")
    assert answer.text == text
    assert [entry["part"] for entry in answer.metadata["degraded"]] == ["images"]


async def test_an_answer_has_so_many_images_at_most(bench: Bench, bot: Chatbot) -> None:
    made = [png(str(number)).data_url() for number in range(9)]
    bench.script(CHAT, Said(["Here."], images=made))
    answer = await bot.ask("Draw")
    assert answer.text.count("![]") == 8
    assert "at most 8" in answer.metadata["degraded"][0]["reason"]


class Full:
    """A store that takes nothing."""

    async def keep_image(
        self, session: Session, image: Image, *, at: datetime | None = None
    ) -> None:
        message = "The disk is full."
        raise HistoryError(message)

    async def find_image(self, user_id: str, name: str) -> Image | None:
        message = "The disk is gone."
        raise HistoryError(message)


async def test_a_store_that_fails_does_not_stop_the_answer(bench: Bench) -> None:
    bot = bench.bot_with(sees_images=True, images=Full())
    bench.script(CHAT, Said(["One."]), CHAT, Said(["Two."]))
    answer = await bot.ask("What is this?", images=[ONE.data], session_id="s")
    assert answer.text == "One."
    assert "disk is full" in answer.metadata["degraded"][0]["reason"]
    answer = await bot.ask("And?", session_id="s")
    assert "disk is gone" in answer.metadata["degraded"][0]["reason"]
    [first, _] = await bot.turns("s")
    events = [event async for event in bot.regenerate("s", first.id)]
    assert events[-1]["data"]["code"] == "history_unavailable"


async def test_an_exported_session_has_its_images(bench: Bench, bot: Chatbot) -> None:
    bench.script(CHAT, Said(["Here."], images=[TWO.data_url()]))
    await bot.ask("What is this?", images=[ONE.data], session_id="s")
    data = await bot.export("s")
    assert set(data["images"]) == {ONE.name, TWO.name}
    await bot.import_(data, user_id="bob", session_id="copy")
    assert await bot.image(ONE.name, user_id="bob") == ONE
    assert await bot.image(TWO.name, user_id="bob") == TWO
    [turn] = await bot.turns("copy", user_id="bob")
    assert TWO.address in turn.answer


@pytest.mark.parametrize(
    "images",
    [
        pytest.param({ONE.name: "AAAA"}, id="no image"),
        pytest.param({ONE.name: base64.b64encode(TWO.data).decode()}, id="another one"),
        pytest.param({"../x": base64.b64encode(ONE.data).decode()}, id="another name"),
        pytest.param([1], id="no names"),
    ],
)
async def test_images_that_are_not_what_they_say_are_not_imported(
    bench: Bench, bot: Chatbot, images: Any
) -> None:
    bench.script(CHAT, Said(["Hello."]))
    await bot.ask("hi", session_id="s")
    data = {**await bot.export("s"), "images": images}
    with pytest.raises(ChatbotError, match="not an exported session"):
        await bot.import_(data, session_id="copy")
    assert await bot.turns("copy") == []
