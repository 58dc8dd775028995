"""Our app on uvicorn, which says where it is and ends in order."""

import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import uvicorn

from chatbot.settings import Settings
from serving.cli.ports import address_of
from serving.cli.signals import ENDING
from serving.http.app import create_app
from serving.process import open_served

GRACE_SECONDS = 10  # how long running answers may take to end when the server stops


async def serve_on(bound: socket.socket, settings: Settings) -> None:
    """Serve on a listening socket until a signal ends it; running answers may end first.

    Raises:
        ConfigurationError: A setting is wrong or another one is missing beside it.
    """
    async with open_served(settings) as bot:
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
