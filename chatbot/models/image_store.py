"""Keeps the images that a model makes, so that an answer is Markdown."""

import asyncio
import hashlib
import re
from pathlib import Path

from chatbot.errors import InputError
from chatbot.models.images import KINDS, decoded

LONGEST = 20 * 1024 * 1024
_NAME = re.compile(r"[0-9a-f]{64}\.(?:png|jpg|gif|webp)")


class ImageStore:
    """A folder of images, each named by what it holds.

    `address` is where the folder is served; a name is appended to it.
    """

    def __init__(self, folder: Path, address: str) -> None:
        self._folder = folder
        self._address = address.rstrip("/")

    async def markdown(self, url: str) -> str:
        """Return the Markdown that shows an image, after keeping it if it came as data.

        Raises:
            InputError: It is neither an image nor an https address.
        """
        if url.startswith("data:"):
            kind, data = decoded(url, LONGEST)
            name = f"{hashlib.sha256(data).hexdigest()}.{KINDS[kind]}"
            await asyncio.to_thread(self._write, name, data)
            return f"![]({self._address}/{name})"
        if url.startswith("https://") and not re.search(r"[\s()<>\\]", url):
            return f"![]({url})"
        message = "The model made an image that cannot be shown."
        raise InputError(message)

    def path(self, name: str) -> Path | None:
        """Return the file of an image, or nothing where the name is none of ours."""
        return self._folder / name if _NAME.fullmatch(name) else None

    def _write(self, name: str, data: bytes) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / name
        if not path.exists():
            part = path.with_suffix(".part")
            part.write_bytes(data)
            part.replace(path)
