"""An image: what kind its first bytes say it is, and the name and address it is kept under."""

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from chatbot.errors import ImageError

ADDRESS = "/api/images/"  # where the HTTP app gives what is kept; a name is appended
KINDS: Mapping[str, str] = {
    "image/png": "png",
    "image/jpeg": "jpg",
    "image/gif": "gif",
    "image/webp": "webp",
}
MEGABYTE = 1024 * 1024
_MAGIC = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
_DATA_URL = re.compile(r"data:[^,;]*(?:;[^,;]*)*;base64,", re.IGNORECASE)
_NAME = r"[0-9a-f]{64}\.(?:png|jpg|gif|webp)"
_SHOWN = re.compile(rf"!\[[^\]]*\]\({ADDRESS}({_NAME})\)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """An image of one of `KINDS`. `name` is made from what it holds."""

    name: str
    kind: str
    data: bytes = field(repr=False)

    @property
    def address(self) -> str:
        """Where the HTTP app gives it, once it is kept."""
        return f"{ADDRESS}{self.name}"

    def data_url(self) -> str:
        """Return the image as models take it."""
        return f"data:{self.kind};base64,{base64.b64encode(self.data).decode()}"


def image_of(data: bytes, longest: int) -> Image:
    """Return the image that the bytes are, whatever anybody calls it.

    Raises:
        ImageError: They are none of a known kind, or too many.
    """
    if len(data) > longest:
        raise too_large(longest)
    kind = next((kind for kind, magic in _MAGIC.items() if magic.match(data)), None)
    if kind is None:
        message = "An image must be a PNG, JPEG, GIF or WebP file; this is something else."
        raise ImageError("wrong_type", message)
    name = f"{hashlib.sha256(data).hexdigest()}.{KINDS[kind]}"
    return Image(name=name, kind=kind, data=data)


def image_in(url: str, longest: int) -> Image:
    """Return the image inside a data URL.

    Raises:
        ImageError: It holds no image of a known kind as base64, or one that is too large.
    """
    head = _DATA_URL.match(url[:200])
    if head is None:
        message = "An image inside the message must be a data URL with base64."
        raise ImageError("wrong_type", message)
    if (len(url) - head.end()) * 3 // 4 > longest + 2:
        raise too_large(longest)
    try:
        data = base64.b64decode(url[head.end() :], validate=True)
    except (binascii.Error, ValueError):
        message = "The image inside the message is not base64."
        raise ImageError("wrong_type", message) from None
    return image_of(data, longest)


def named(name: str, data: bytes) -> Image:
    """Return the image that was kept under a name."""
    extension = name.rpartition(".")[2]
    kind = next(kind for kind, ending in KINDS.items() if ending == extension)
    return Image(name=name, kind=kind, data=data)


def too_large(longest: int) -> ImageError:
    """Return the error for an image of more than so many bytes."""
    return ImageError("too_large", f"An image can have at most {longest / MEGABYTE:g} MB.")


def is_name(text: str) -> bool:
    """Tell whether the text is a name of the form that images are kept under."""
    return re.fullmatch(_NAME, text) is not None


def kept_name(address: str) -> str | None:
    """Return the name in the address of a kept image, or nothing for any other address."""
    name = address.removeprefix(ADDRESS)
    return name if name != address and is_name(name) else None


def names_shown(markdown: str) -> list[str]:
    """Return the names of the kept images that a Markdown text shows."""
    return _SHOWN.findall(markdown)


def without_images(markdown: str, instead: str) -> str:
    """Return a Markdown text with a note in the place of each kept image."""
    return _SHOWN.sub(instead, markdown)
