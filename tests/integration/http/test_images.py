"""Images over HTTP: with a question, again with its turn, and for their user alone."""

from typing import Any

import pytest

from chatbot.domain import Session
from chatbot.images.image import Image, image_of
from serving.http.limits import BODY_BYTES
from tests.integration.http.service import LONGEST_IMAGE, Service


def png(text: str) -> Image:
    return image_of(b"\x89PNG\r\n\x1a\n" + text.encode(), LONGEST_IMAGE)


ONE, TWO, LARGE = png("one"), png("two"), png("x" * 1_900_000)


def images_asked(service: Service) -> list[str]:
    """Return the addresses of the images in the last message to the model."""
    content: Any = service.model.asked[-1][-1].content
    return [block["image_url"]["url"] for block in content if block["type"] == "image_url"]


def test_a_question_may_have_images(service: Service) -> None:
    limits = service.client.get("/api/images").json()
    assert limits == {
        "accepted": True,
        "most": 2,
        "bytes": LONGEST_IMAGE,
        "kinds": ["image/png", "image/jpeg", "image/gif", "image/webp"],
    }
    events = service.ask("hello", images=[ONE.data_url(), TWO.data_url()], session_id="a")
    assert events[-1]["type"] == "end"
    assert events[-1]["data"]["metadata"]["images"] == [ONE.address, TWO.address]
    assert images_asked(service) == [ONE.data_url(), TWO.data_url()]


def test_images_come_back_with_their_turn(service: Service) -> None:
    service.ask("hello", images=[ONE.data_url()], session_id="a")
    [turn] = service.client.get("/api/sessions/a").json()["turns"]
    assert turn["images"] == [ONE.address]
    image = service.client.get(turn["images"][0])
    assert (image.content, image.headers["content-type"]) == (ONE.data, "image/png")
    assert image.headers["x-content-type-options"] == "nosniff"
    assert image.headers["content-security-policy"].startswith("default-src 'none'")
    assert image.headers["cache-control"] == "private, no-cache"
    known = {"If-None-Match": image.headers["etag"]}
    assert service.client.get(turn["images"][0], headers=known).status_code == 304

    service.ask("hello", images=turn["images"], session_id="a", replaces=turn["id"])
    assert images_asked(service) == [ONE.data_url()]


def test_images_go_with_their_conversation(service: Service) -> None:
    service.ask("hello", images=[ONE.data_url()], session_id="a")
    service.client.delete("/api/sessions/a")
    assert service.client.get(ONE.address).status_code == 404


def test_an_image_of_an_answer_is_shown(service: Service) -> None:
    service.model.drawings = [ONE.data_url()]
    events = service.ask("hello", session_id="a")
    assert f"![]({ONE.address})" in events[-1]["data"]["full_answer"]
    assert service.client.get(ONE.address).content == ONE.data


async def test_an_image_of_somebody_else_is_not_there(service: Service) -> None:
    await service.history.keep_image(Session(session_id="a", user_id="ann"), ONE)
    response = service.client.get(ONE.address)
    assert (response.status_code, response.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("0" * 64 + ".png", id="no such image"),
        pytest.param("..%2f..%2fhistory.sqlite3", id="another file"),
        pytest.param("0" * 64 + ".svg", id="another kind"),
    ],
)
def test_only_kept_images_are_given(service: Service, name: str) -> None:
    assert service.client.get(f"/api/images/{name}").status_code == 404


@pytest.mark.parametrize(
    ("images", "code"),
    [
        pytest.param([ONE.data_url()] * 3, "image_too_many", id="too many"),
        pytest.param([LARGE.data_url() + "A" * 400_000], "image_too_large", id="too large"),
        pytest.param(["data:image/svg+xml;base64,PHN2Zz4="], "image_wrong_type", id="SVG"),
        pytest.param(["https://127.0.0.1/a.png"], "image_not_allowed", id="a private address"),
        pytest.param(["/etc/passwd"], "image_not_allowed", id="a file of the server"),
        pytest.param([TWO.address], "image_gone", id="not kept"),
    ],
)
def test_other_images_are_refused_with_an_event(
    service: Service, images: list[str], code: str
) -> None:
    *_, error = service.ask("hello", images=images)
    assert (error["type"], error["data"]["code"]) == ("error", code)
    assert service.model.asked == []


@pytest.mark.parametrize("images", ["x", [1], [None], [["x"]], [{"url": "x"}], ["x"] * 101])
def test_what_is_no_list_of_images_is_refused(service: Service, images: object) -> None:
    response = service.client.post("/api/chat", json={"question": "a", "images": images})
    assert response.status_code == 422
    assert "images" in response.json()["error"]["message"]


def test_the_body_of_a_question_may_be_as_large_as_its_images(service: Service) -> None:
    images = [LARGE.data_url(), LARGE.data_url()]
    assert len(images[0]) > BODY_BYTES
    assert service.ask("hello", images=images)[-1]["type"] == "end"
