"""`chatbot serve`: the page and the HTTP API on uvicorn."""

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import uvicorn

from chatbot.errors import ConfigurationError
from chatbot.logs import configure_logging
from chatbot.settings import Settings
from serving.cli.ports import address_of, listen
from serving.cli.signals import ENDING
from serving.http.protection import is_loopback

GRACE_SECONDS = 10  # how long running answers may take to end when the server stops


def serve(host: str, port: int, *, insecure: bool) -> None:
    """Serve until a signal ends it; running answers may end first.

    Raises:
        ConfigurationError: A setting is wrong, or the address cannot be listened on.
    """
    settings = Settings.load()
    if not insecure and not is_loopback(host):
        message = (
            f"{host} can be reached from other machines, and nobody has to sign in. "
            "Use 127.0.0.1, or add --insecure if the network around it is trusted."
        )
        raise ConfigurationError(message)
    configure_logging(settings)
    with listen(host, port, "chatbot serve --port 8123") as bound:
        asyncio.run(_serve(settings, bound))


async def _serve(settings: Settings, bound: socket.socket) -> None:
    from graphs.conversation import open_chatbot  # noqa: PLC0415 - after the quick refusals
    from serving.http.app import create_app  # noqa: PLC0415

    async with open_chatbot(settings) as bot:
        app = create_app(settings, open_bot=lambda _: nullcontext(bot))
        config = uvicorn.Config(
            app, log_config=None, access_log=False, timeout_graceful_shutdown=GRACE_SECONDS
        )
        await _Server(config).serve(sockets=[bound])


class _Server(uvicorn.Server):
    """Says where the page is once it is there, and leaves the closing to its caller."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then tell the address."""
        await super().startup(sockets)
        for bound in sockets or ():
            print(f"The chatbot is at {address_of(bound)} (Ctrl-C stops it)", flush=True)  # noqa: T201

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End in order at a signal; it is not raised again, so that the ports can close."""
        for number in (signal.SIGINT, *ENDING):
            signal.signal(number, self.handle_exit)
        yield
