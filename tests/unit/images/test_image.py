"""What is an image, and what it is called."""

import base64
from typing import Any

import pytest

from chatbot.errors import ImageError, InputError
from chatbot.images.blocks import block_of, url_of
from chatbot.images.image import (
    Image,
    image_in,
    image_of,
    is_name,
    kept_name,
    names_shown,
    without_images,
)

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
BASE64 = base64.b64encode(PNG).decode()
URL = f"data:image/png;base64,{BASE64}"
LIMIT = 1_000_000


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block_of(URL), id="OpenAI"),
        pytest.param({"type": "image_url", "image_url": URL}, id="OpenAI, short"),
        pytest.param({"type": "input_image", "image_url": URL}, id="OpenAI, responses"),
        pytest.param(
            {"type": "image", "mime_type": "image/png", "base64": BASE64}, id="LangChain"
        ),
        pytest.param({"type": "image", "url": URL}, id="LangChain, address"),
        pytest.param(
            {"type": "image", "source": {"media_type": "image/png", "data": BASE64}},
            id="Anthropic",
        ),
        pytest.param({"type": "image", "source": {"url": URL}}, id="Anthropic, address"),
    ],
)
def test_every_form_has_its_address(block: dict[str, Any]) -> None:
    assert url_of(block) == URL


@pytest.mark.parametrize("block", [{"type": "image_url", "image_url": ""}, {"type": "image"}])
def test_a_block_without_an_image_is_refused(block: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="neither data"):
        url_of(block)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        pytest.param(PNG, "image/png", id="PNG"),
        pytest.param(b"\xff\xd8\xff\xe0", "image/jpeg", id="JPEG"),
        pytest.param(b"GIF89a...", "image/gif", id="GIF"),
        pytest.param(b"RIFF\n\n\n\nWEBPVP8", "image/webp", id="WebP"),
    ],
)
def test_the_first_bytes_tell_the_kind(data: bytes, kind: str) -> None:
    image = image_of(data, LIMIT)
    assert image.kind == kind
    assert is_name(image.name)
    assert image_in(image.data_url(), LIMIT) == image


def test_what_a_data_url_says_of_its_kind_does_not_count() -> None:
    image = image_in(f"data:image/jpeg;charset=x;base64,{BASE64}", LIMIT)
    assert image.data_url() == URL


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        pytest.param("data:image/svg+xml;base64,PHN2Zz4=", "wrong_type", id="SVG"),
        pytest.param("data:image/png;base64,PHNjcmlwdD4=", "wrong_type", id="a page"),
        pytest.param("data:image/png,abc", "wrong_type", id="not base64"),
        pytest.param("data:image/png;base64,!!!!", "wrong_type", id="broken base64"),
        pytest.param("data:image/png;base64,", "wrong_type", id="nothing"),
        pytest.param(
            "data:image/png;base64," + "A" * 2_000_000, "too_large", id="too large"
        ),
    ],
)  # fmt: skip
def test_what_is_no_image_is_refused(url: str, kind: str) -> None:
    with pytest.raises(ImageError) as caught:
        image_in(url, LIMIT)
    assert (caught.value.kind, caught.value.code) == (kind, f"image_{kind}")
    assert not caught.value.retryable


def test_an_image_may_have_exactly_the_limit() -> None:
    exactly = PNG.ljust(LIMIT, b".")
    assert len(image_in(image_url(exactly), LIMIT).data) == LIMIT
    with pytest.raises(ImageError, match="at most"):
        image_in(image_url(exactly + b"."), LIMIT)


def image_url(data: bytes) -> str:
    return f"data:;base64,{base64.b64encode(data).decode()}"


@pytest.mark.parametrize("name", ["../../etc/passwd", "a.png", "", "x" * 64 + ".png", "0" * 64])
def test_only_names_of_ours_are_names(name: str) -> None:
    assert not is_name(name)
    assert kept_name(f"/api/images/{name}") is None


def test_kept_images_are_found_in_a_text() -> None:
    one: Image = image_of(PNG, LIMIT)
    text = f"Here: ![]({one.address}) and ![](https://x.test/a.png)"
    assert kept_name(one.address) == one.name
    assert names_shown(text) == [one.name]
    assert without_images(text, "[image]") == "Here: [image] and ![](https://x.test/a.png)"
