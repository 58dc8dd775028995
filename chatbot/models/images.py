"""Images in what people send to a model."""

from langchain_core.messages import BaseMessage

_IMAGE_BLOCKS = frozenset({"image", "image_url", "input_image"})


def has_images(message: BaseMessage) -> bool:
    """Whether one of the message's content blocks is an image."""
    return isinstance(message.content, list) and any(
        isinstance(block, dict) and block.get("type") in _IMAGE_BLOCKS
        for block in message.content
    )
