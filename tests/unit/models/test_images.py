"""Images that come in and go out."""

import base64
from pathlib import Path
from typing import Any

import pytest

from chatbot.errors import InputError
from chatbot.models.endpoints import sees_images
from chatbot.models.image_store import ImageStore
from chatbot.models.images import ImagePolicy

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"pixels").decode()
URL = f"data:image/png;base64,{PNG}"
OPENAI = {"type": "image_url", "image_url": {"url": URL}}


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(OPENAI, id="OpenAI"),
        pytest.param({"type": "image_url", "image_url": URL}, id="OpenAI, short"),
        pytest.param(
            {"type": "image", "mime_type": "image/png", "base64": PNG}, id="LangChain"
        ),
        pytest.param({"type": "image", "url": URL}, id="LangChain, address"),
        pytest.param(
            {"type": "image", "source": {"media_type": "image/png", "data": PNG}},
            id="Anthropic",
        ),
    ],
)  # fmt: skip
async def test_every_form_becomes_one(block: dict[str, Any]) -> None:
    text = {"type": "text", "text": "What is this?"}
    assert await ImagePolicy().checked([text, block]) == [text, OPENAI]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        pytest.param("data:image/svg+xml;base64,PHN2Zz4=", "must be one of", id="SVG"),
        pytest.param("data:text/html;base64,PHN2Zz4=", "must be one of", id="a page"),
        pytest.param("data:image/png,abc", "must be one of", id="not base64"),
        pytest.param("data:image/png;base64,!!!!", "is not the image/png", id="broken base64"),
        pytest.param(
            f"data:image/jpeg;base64,{PNG}", "is not the image/jpeg", id="another kind"
        ),
        pytest.param(
            "data:image/png;base64," + "A" * 9_000_000, "at most 5 MB", id="too large"
        ),
        pytest.param("https://example.com/a.png", "IMAGE_HOSTS", id="a host nobody named"),
        pytest.param("http://images.test/a.png", "https", id="without TLS"),
        pytest.param("https://images.test.evil.com/a.png", "https", id="a name that begins so"),
        pytest.param("https://evilimages.test/a.png", "https", id="a name that ends so"),
        pytest.param("https://u:p@images.test/a.png", "https", id="with a password"),
        pytest.param("https://images.test:8443/a.png", "https", id="another port"),
        pytest.param("file:///etc/passwd", "https", id="a file"),
        pytest.param("", "neither data", id="nothing"),
    ],
)
async def test_other_images_are_refused(url: str, words: str) -> None:
    allowed = frozenset() if "example" in url else frozenset({"images.test"})
    with pytest.raises(InputError, match=words):
        await ImagePolicy(hosts=allowed).checked([{"type": "image_url", "image_url": url}])


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]", "localhost", "[::ffff:10.0.0.1]"],
)
async def test_private_addresses_are_refused(host: str) -> None:
    block = {"type": "image_url", "image_url": {"url": f"https://{host}/a.png"}}
    with pytest.raises(InputError, match="public address"):
        await ImagePolicy(hosts=frozenset({"*"})).checked([block])


async def test_a_public_address_is_let_through() -> None:
    block = {"type": "image_url", "image_url": {"url": "https://1.1.1.1/a.png"}}
    assert await ImagePolicy(hosts=frozenset({"1.1.1.1"})).checked([block]) == [block]


async def test_too_many_images_are_refused() -> None:
    with pytest.raises(InputError, match="at most 2"):
        await ImagePolicy(most=2).checked([OPENAI] * 3)


async def test_images_of_an_answer_become_markdown(tmp_path: Path) -> None:
    store = ImageStore(tmp_path / "images", "/api/images/")
    shown = await store.markdown(URL)
    assert await store.markdown(URL) == shown
    name = shown.removeprefix("![](/api/images/").removesuffix(")")
    kept = store.path(name)
    assert kept is not None
    assert kept.read_bytes() == base64.b64decode(PNG)
    assert await store.markdown("https://x.test/a.png") == "![](https://x.test/a.png)"
    for bad in ("data:text/html;base64,AAAA", "javascript:alert(1)", "https://x/a) [b](c"):
        with pytest.raises(InputError):
            await store.markdown(bad)


@pytest.mark.parametrize("name", ["../../etc/passwd", "a.png", "", "x" * 64 + ".png"])
def test_only_own_names_have_a_path(name: str, tmp_path: Path) -> None:
    assert ImageStore(tmp_path, "/images").path(name) is None


@pytest.mark.parametrize(
    ("model", "sees"),
    [
        ("gpt-4o", True),
        ("gpt-4.1-mini", True),
        ("qwen-vl-max", True),
        ("Qwen/Qwen2.5-VL-7B-Instruct", True),
        ("llava:13b", True),
        ("gemini-2.5-flash", True),
        ("gpt-3.5-turbo", False),
        ("gpt-oss-20b", False),
        ("qwen-plus", False),
        ("deepseek-chat", False),
        ("o3-mini", False),
    ],
)
def test_the_name_of_a_model_tells_whether_it_sees(model: str, *, sees: bool) -> None:
    assert sees_images(model) is sees
