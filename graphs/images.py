"""The images of a turn: those of its question, those shown again, those of its answer."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage

from chatbot.domain import Turn
from chatbot.errors import HistoryError, ImageError, InputError, ModelError
from chatbot.images.blocks import block_of, url_of
from chatbot.images.image import (
    ADDRESS,
    MEGABYTE,
    Image,
    image_in,
    image_of,
    kept_name,
    names_shown,
    too_large,
)
from chatbot.images.policy import ImagePolicy
from chatbot.ports import Ports
from graphs.turn import LiveTurn

SEEN_TURNS = 3  # how far back a question is shown the images of earlier ones
MADE_BYTES = 12 * MEGABYTE  # a document of MongoDB holds 16 MB
MOST_MADE = 8

Block = Mapping[str, Any]


async def message_of(
    question: str, images: Sequence[str | bytes | Path], ports: Ports
) -> HumanMessage:
    """Return a question with its images, of which files and bytes become data URLs.

    Raises:
        InputError: One of both is something else.
        ImageError: A file cannot be read, or is too large.
    """
    if not isinstance(question, str):
        message = "The question must be text."
        raise InputError(message)
    if not _are_images(images):
        message = "images must be a list of addresses, paths or bytes."
        raise InputError(message)
    longest = ports.image_policy.longest
    urls = [
        each if isinstance(each, str) else await asyncio.to_thread(_data_url, each, longest)
        for each in images
    ]
    blocks: list[str | dict[str, Any]] = [block_of(url) for url in urls]
    return HumanMessage([{"type": "text", "text": question}, *blocks] if blocks else question)


def _are_images(given: object) -> bool:
    """Tell whether this is a list of what images may be given as; text alone is no list."""
    return isinstance(given, (list, tuple)) and all(
        isinstance(each, (str, bytes, Path)) for each in given
    )


async def take_images(
    blocks: Sequence[Block], earlier: Sequence[Turn], turn: LiveTurn, ports: Ports
) -> None:
    """Give the turn the images of its question, and those of earlier ones that it may be about.

    They are with the turn, not in the state, which every trace and client would repeat.

    Raises:
        ModelError: No endpoint of the model reads images.
        ImageError: There are too many, or one of them cannot be used.
        HistoryError: One that is kept could not be read.
    """
    turn.images = await _question_images(blocks, turn, ports) if blocks else ()
    left = ports.image_policy.most - len(turn.images)
    turn.earlier_images = await _earlier_images(earlier, turn, ports, most=left)


async def _question_images(
    blocks: Sequence[Block], turn: LiveTurn, ports: Ports
) -> Sequence[Block]:
    """Return the question's images as models take them, after keeping them with the session."""
    if not ports.sees_images:
        message = "The language model cannot read images. Ask without one, or set one that can."
        raise ModelError("unsupported", message)
    if len(blocks) > (most := ports.image_policy.most):
        message = f"A question can have at most {most} images."
        raise ImageError("too_many", message)
    images = [await _read(url_of(block), turn, ports) for block in blocks]
    for image in images:
        await _keep(image, turn, ports)
    turn.note(images=[image.name for image in images])
    return [block_of(await asyncio.to_thread(image.data_url)) for image in images]


async def _earlier_images(
    turns: Sequence[Turn], turn: LiveTurn, ports: Ports, *, most: int
) -> Mapping[str, Sequence[Block]]:
    """Return, by the id of their turn, the images of the last questions, the newest first.

    A model that saw them a moment ago can be asked about them again. What lies further back,
    or is not there any more, is a note in the prompt.
    """
    shown: dict[str, list[Block]] = {}
    for earlier in reversed(turns[-SEEN_TURNS:] if ports.sees_images else []):
        for name in _names(earlier):
            if most <= 0:
                return shown
            try:
                image = await _find(name, turn, ports)
            except HistoryError as error:
                turn.degrade("images", error.message)
                return shown
            if image is not None:
                block = block_of(await asyncio.to_thread(image.data_url))
                shown.setdefault(earlier.id, []).append(block)
                most -= 1
    return shown


async def image_markdown(url: str, turn: LiveTurn, ports: Ports) -> str:
    """Return the Markdown that shows an image that the model made, after keeping it.

    One that cannot be kept is a link, where it has an address; the turn says why.
    """
    try:
        if len(names_shown(turn.answer)) >= MOST_MADE:
            message = f"An answer shows at most {MOST_MADE} images."
            raise ImageError("too_many", message)  # noqa: TRY301 - told like all others
        image = await _made(url, ports)
    except ImageError as error:
        turn.degrade("images", f"An image of the answer was not kept. {error.message}")
        linkable = re.fullmatch(r"https://[^\s()<>\\\[\]]+", url)
        return f"[{url.split('/')[2]}]({url})" if linkable else ""
    await _keep(image, turn, ports)
    return f"![]({image.address})"


def addresses_of(turn: Turn) -> list[str]:
    """Return the addresses of the images of a question, as far as they were kept."""
    return [f"{ADDRESS}{name}" for name in _names(turn)]


def _names(turn: Turn) -> list[str]:
    # Turns from before images were kept have their number instead.
    names = turn.record.get("images")
    return [str(name) for name in names] if isinstance(names, list) else []


def _data_url(image: bytes | Path, longest: int) -> str:
    """Return the image as a data URL. Reads the disk: call it in a thread."""
    if isinstance(image, bytes):
        return image_of(image, longest).data_url()
    try:
        if image.stat().st_size > longest:
            raise too_large(longest)
        return image_of(image.read_bytes(), longest).data_url()
    except OSError as error:
        message = f"The image file {image} cannot be read: {error.strerror}."
        raise ImageError("unreachable", message) from None


async def _read(url: str, turn: LiveTurn, ports: Ports) -> Image:
    """Return an image of a question: from the message, from the store, or from elsewhere."""
    policy = ports.image_policy
    if url[:5].lower() == "data:":
        return await asyncio.to_thread(image_in, url, policy.longest)
    if (name := kept_name(url)) is None:
        return await _fetch(url, policy)
    if (image := await _find(name, turn, ports)) is None:
        message = "An image of this question is no longer kept. Attach it again."
        raise ImageError("gone", message)
    return image


async def _made(url: str, ports: Ports) -> Image:
    if url[:5].lower() == "data:":
        return await asyncio.to_thread(image_in, url, MADE_BYTES)
    return await _fetch(url, replace(ports.image_policy, longest=MADE_BYTES))


async def _fetch(url: str, policy: ImagePolicy) -> Image:
    from chatbot.images.fetching import fetch  # noqa: PLC0415 - aiohttp: not where no model sees

    return await fetch(url, policy)


async def _find(name: str, turn: LiveTurn, ports: Ports) -> Image | None:
    if ports.images is None:
        return None
    return await ports.images.find_image(turn.session.user_id, name)


async def _keep(image: Image, turn: LiveTurn, ports: Ports) -> None:
    if ports.images is None:
        return
    try:
        await ports.images.keep_image(turn.session, image, at=turn.started_at)
    except HistoryError as error:
        turn.degrade("images", f"An image could not be kept: {error.message}")
