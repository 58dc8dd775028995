"""Fetches an image from another server, and nothing else than an image."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from chatbot.errors import ImageError
from chatbot.images.image import Image, image_of, too_large
from chatbot.images.policy import ImagePolicy
from chatbot.tls import tls_context

FETCH_SECONDS = 10.0
REDIRECTS = 3
PIECE = 64 * 1024
MOVED = frozenset({301, 302, 303, 307, 308})
HEADERS = {
    "Accept": "image/png, image/jpeg, image/gif, image/webp",
    "Accept-Encoding": "identity",
    "User-Agent": "ragflow-chatbot",
}


async def fetch(address: str, policy: ImagePolicy, *, seconds: float = FETCH_SECONDS) -> Image:
    """Return the image at an address.

    Every address on the way is checked, redirects included, and the connection is made to the
    very network address that was checked, whatever the host's name means a moment later.

    Raises:
        ImageError: The policy does not allow it, or there is no image that can be used.
    """
    try:
        url = URL(address)
        async with asyncio.timeout(seconds):
            for _ in range(REDIRECTS + 1):
                found = await _fetch_once(url, policy)
                if isinstance(found, bytes):
                    return await asyncio.to_thread(image_of, found, policy.longest)
                url = found
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        raise _unreachable(_host_of(address)) from None
    raise _unreachable(url.host, "it leads from one address to the next")


async def _fetch_once(url: URL, policy: ImagePolicy) -> bytes | URL:
    """Return what is at the address, or the address that it leads to."""
    policy.check(url)
    addresses = await policy.addresses(url)
    async with _response(url, addresses) as response:
        if response.status in MOVED and (target := response.headers.get("Location")):
            return url.join(URL(target))
        if response.status != HTTPStatus.OK:
            raise _unreachable(url.host, f"status {response.status}")
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise _unreachable(url.host, "it is compressed once more")
        if (response.content_length or 0) > policy.longest:
            raise too_large(policy.longest)
        body = bytearray()
        async for piece in response.content.iter_chunked(PIECE):
            body += piece
            if len(body) > policy.longest:
                raise too_large(policy.longest)
        return bytes(body)


@asynccontextmanager
async def _response(
    url: URL, addresses: Sequence[str]
) -> AsyncIterator[aiohttp.ClientResponse]:
    secure = await asyncio.to_thread(tls_context) if url.scheme == "https" else True
    connector = aiohttp.TCPConnector(
        resolver=_Known(addresses), use_dns_cache=False, force_close=True, ssl=secure
    )
    async with (
        aiohttp.ClientSession(
            connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
        ) as session,
        session.get(url, headers=HEADERS, allow_redirects=False) as response,
    ):
        yield response


class _Known(AbstractResolver):
    """Answers with addresses that were looked up and checked before."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses, whatever the name means now."""
        del family
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    async def close(self) -> None:
        """Release nothing."""


def _host_of(address: str) -> str | None:
    try:
        return URL(address).host
    except ValueError:
        return None


def _unreachable(host: str | None, reason: str = "") -> ImageError:
    """Return the error for an image that did not come. Tells no more of its address."""
    why = f" ({reason})" if reason else ""
    message = f"The image at {host or 'this address'} could not be fetched{why}."
    return ImageError("unreachable", message)
