"""The images of a session that is exported, inside its JSON document."""

import asyncio
import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from chatbot.domain import Session
from chatbot.errors import ImageError, InputError
from chatbot.images.image import MEGABYTE, Image, image_of, is_name, names_shown
from chatbot.ports import ImageStore

MOST_BYTES = 20 * MEGABYTE  # in one document; what is beyond stays a name without an image


async def exported(
    store: ImageStore, user_id: str, turns: Iterable[Mapping[str, Any]]
) -> dict[str, str]:
    """Return the images of exported turns by their names, as base64, the newest first.

    Raises:
        HistoryError: One of them could not be read.
    """
    found: dict[str, str] = {}
    left = MOST_BYTES
    for name in dict.fromkeys(name for turn in reversed([*turns]) for name in _names(turn)):
        image = await store.find_image(user_id, name)
        if image is not None and len(image.data) <= left:
            left -= len(image.data)
            found[name] = await asyncio.to_thread(_written, image)
    return found


def read(data: object) -> list[Image]:
    """Return the images in an exported session. Decodes them: call it in a thread.

    Raises:
        InputError: One of them is not what its name says.
    """
    images = data.get("images", {}) if isinstance(data, Mapping) else {}
    if not isinstance(images, Mapping):
        raise _unreadable()
    return [_read(name, text) for name, text in images.items()]


async def kept(store: ImageStore, session: Session, images: Iterable[Image]) -> None:
    """Keep images that were read with their session.

    Raises:
        HistoryError: One of them could not be written.
    """
    for image in images:
        await store.keep_image(session, image)


def _names(turn: Mapping[str, Any]) -> list[str]:
    asked = turn["record"].get("images")
    mine = [name for name in asked if isinstance(name, str)] if isinstance(asked, list) else []
    return [name for name in [*mine, *names_shown(turn["answer"])] if is_name(name)]


def _written(image: Image) -> str:
    return base64.b64encode(image.data).decode()


def _read(name: object, text: object) -> Image:
    try:
        image = image_of(base64.b64decode(str(text), validate=True), MOST_BYTES)
    except (binascii.Error, ValueError, ImageError):
        raise _unreadable() from None
    if image.name != name:
        raise _unreadable()
    return image


def _unreadable() -> InputError:
    return InputError("This is not an exported session: images: one of them is something else.")
