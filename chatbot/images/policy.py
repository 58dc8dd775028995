"""Which images are taken, and from where."""

from dataclasses import dataclass

from yarl import URL

from chatbot.errors import ImageError
from chatbot.images.addresses import Lookup, is_public, look_up
from chatbot.images.image import MEGABYTE

HTTPS_PORT = 443


@dataclass(frozen=True, kw_only=True, slots=True)
class ImagePolicy:
    """How large and how many images may be, and from which hosts they are fetched.

    Images inside a message are always taken. Those behind an https address only from `hosts`
    and their subdomains, or from anywhere where `hosts` holds `*`, and only from addresses of
    the public internet. `private_hosts` are hosts of one's own network, each by its name or as
    `name:port`: these may have private addresses and speak plain http.
    """

    hosts: frozenset[str] = frozenset()
    private_hosts: frozenset[str] = frozenset()
    longest: int = 5 * MEGABYTE
    most: int = 4
    look_up: Lookup = look_up

    def check(self, url: URL) -> None:
        """Refuse an address that no image may come from.

        Raises:
            ImageError: It is none of the named hosts, or not reached by https.
        """
        host = (url.raw_host or "").rstrip(".").lower()
        named = any(host == each or host.endswith(f".{each}") for each in self.hosts)
        public = (
            url.scheme == "https" and url.port == HTTPS_PORT and (named or "*" in self.hosts)
        )
        plain = not (url.user or url.password)
        if plain and (public or self._is_private_host(url)):
            return
        message = (
            "Images can come inside the message, or from an https address at "
            f"{', '.join(sorted(self.hosts)) or 'a host that IMAGE_HOSTS names'}."
        )
        raise ImageError("not_allowed", message)

    async def addresses(self, url: URL) -> list[str]:
        """Return the addresses of the host; nothing but these may be connected to.

        Raises:
            ImageError: One of them is not public, and the host is not one of one's own.
            OSError: The host has none.
        """
        host, port = url.raw_host or "", url.port or HTTPS_PORT
        found = list(await self.look_up(host, port))
        if self._is_private_host(url) or (found and all(map(is_public, found))):
            return found
        message = f"The image at {url.host} is not at a public address."
        raise ImageError("not_allowed", message)

    def _is_private_host(self, url: URL) -> bool:
        host = (url.raw_host or "").rstrip(".").lower()
        names = {f"{host}:{url.port}"} | ({host} if url.is_default_port() else set())
        return url.scheme in {"http", "https"} and not names.isdisjoint(self.private_hosts)
