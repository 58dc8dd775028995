"""Images in what people send: which ones may reach a model."""

import asyncio
import base64
import binascii
import ipaddress
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from langchain_core.messages import BaseMessage

from chatbot.errors import InputError

RESOLVE_SECONDS = 3
KINDS: Mapping[str, str] = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
}
_BLOCKS = frozenset({"image", "image_url", "input_image"})
_DATA = re.compile(r"data:([\w/+.-]+);base64,")
_MAGIC = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}


def has_images(message: BaseMessage) -> bool:
    """Whether one of the message's content blocks is an image."""
    return isinstance(message.content, list) and any(
        isinstance(block, dict) and block.get("type") in _BLOCKS for block in message.content
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class ImagePolicy:
    """Which images are let through to a model.

    Those inside the message are, up to `longest` bytes. Of those behind an https address only
    from `hosts` or their subdomains, or from anywhere public where `hosts` holds `*`: it is the
    endpoint that fetches them, perhaps from inside a network of its own.
    """

    hosts: frozenset[str] = frozenset()
    longest: int = 5 * 1024 * 1024
    most: int = 8

    async def checked(self, blocks: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the blocks in the form that every endpoint takes, text as it is.

        Raises:
            InputError: An image is too large, of another kind, or from where none may come.
        """
        checked: list[dict[str, Any]] = []
        images = 0
        for block in blocks:
            if block.get("type") not in _BLOCKS:
                checked.append(dict(block))
                continue
            images += 1
            if images > self.most:
                message = f"A question can have at most {self.most} images."
                raise InputError(message)
            url = _url(block)
            if url.startswith("data:"):
                decoded(url, self.longest)
            else:
                await self._check_address(url)
            checked.append({"type": "image_url", "image_url": {"url": url}})
        return checked

    async def _check_address(self, url: str) -> None:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".").lower()
        known = any(host == each or host.endswith(f".{each}") for each in self.hosts)
        plain = parts.scheme == "https" and not parts.username and parts.port in {None, 443}
        if not plain or not (known or "*" in self.hosts):
            message = (
                "Images can come inside the message, or from an https address at "
                f"{', '.join(sorted(self.hosts)) or 'a host that IMAGE_HOSTS names'}."
            )
            raise InputError(message)
        if not await _is_public(host):
            message = f"The image at {host} is not at a public address."
            raise InputError(message)


def decoded(url: str, longest: int) -> tuple[str, bytes]:
    """Return the kind and the bytes of an image inside a data URL.

    Raises:
        InputError: It is no image of a known kind, or too large.
    """
    head = _DATA.match(url)
    kind = head[1].lower() if head else ""
    if head is None or kind not in KINDS:
        message = f"An image must be one of {', '.join(KINDS)}, as base64."
        raise InputError(message)
    if (len(url) - head.end()) * 3 // 4 > longest + 2:
        message = f"An image can have at most {longest / 1024 / 1024:g} MB."
        raise InputError(message)
    try:
        data = base64.b64decode(url[head.end() :], validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not _MAGIC[kind].match(data):
        message = f"The image is not the {kind} that it says it is."
        raise InputError(message)
    return kind, data


def _url(block: Mapping[str, Any]) -> str:
    """Return the address of an image in the forms of OpenAI, LangChain and Anthropic."""
    image = block.get("image_url") or block.get("url")
    if isinstance(image, Mapping):
        image = image.get("url")
    if isinstance(image, str):
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


async def _is_public(host: str) -> bool:
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(RESOLVE_SECONDS):
            found = await loop.getaddrinfo(host, 443, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError, UnicodeError):
        return False
    return bool(found) and all(
        ipaddress.ip_address(address[0]).is_global for *_, address in found
    )
