"""The blocks of a message that are images, in the forms that clients send."""

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import BaseMessage

from chatbot.errors import InputError

BLOCKS = frozenset({"image", "image_url", "input_image"})


def has_images(message: BaseMessage) -> bool:
    """Whether one of the message's content blocks is an image."""
    return isinstance(message.content, list) and any(
        isinstance(block, dict) and block.get("type") in BLOCKS for block in message.content
    )


def block_of(url: str) -> dict[str, Any]:
    """Return an image in the form that every endpoint takes."""
    return {"type": "image_url", "image_url": {"url": url}}


def url_of(block: Mapping[str, Any]) -> str:
    """Return the address of an image in the forms of OpenAI, LangChain and Anthropic.

    Raises:
        InputError: The block holds none.
    """
    image = block.get("image_url") or block.get("url")
    if isinstance(image, Mapping):
        image = image.get("url")
    if isinstance(image, str) and image:
        return image
    source = block.get("source")
    held = source if isinstance(source, Mapping) else block
    kind = held.get("media_type") or held.get("mime_type")
    data = held.get("data") or held.get("base64")
    if isinstance(data, str):
        return f"data:{kind};base64,{data}"
    if isinstance(held.get("url"), str):
        return str(held["url"])
    message = "An image has neither data nor an address."
    raise InputError(message)
