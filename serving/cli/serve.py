"""`chatbot serve`: the page and the HTTP API, without the LangGraph server."""

import asyncio

from chatbot.errors import ConfigurationError
from chatbot.logs import configure_logging
from chatbot.settings import Settings
from serving.auth import Authenticator
from serving.cli.ports import is_local, listen
from serving.cli.words import complain


def serve(host: str, port: int, workers: int, *, insecure: bool) -> None:
    """Serve until a signal ends it.

    Raises:
        ConfigurationError: A setting is wrong, or the address cannot be listened on.
    """
    settings = Settings.load()
    with listen(host, port, "chatbot serve --port 8123") as bound:
        if not insecure and not is_local(bound) and not Authenticator(settings).required:
            message = (
                f"{host} can be reached from other machines, and nobody has to sign in. "
                "Use 127.0.0.1, set AUTH_KEYS_DIR or JWT_*, or add --insecure if the network "
                "around it is trusted."
            )
            raise ConfigurationError(message)
        if not is_local(bound) and not settings.hosts:
            complain("Set ALLOWED_HOSTS to the names it is reached by: others are refused.")
        if workers > 1 and settings.data_dir is None and settings.mongodb_uri is None:
            message = (
                "Several workers share their conversations: set MONGODB_URI, or "
                "CHATBOT_DATA_DIR to a folder."
            )
            raise ConfigurationError(message)
        configure_logging(settings)
        # What serves is imported now: refusals come at once.
        if workers > 1:
            from serving.cli.workers import serve_by_workers  # noqa: PLC0415 - as above

            serve_by_workers(bound, settings, workers)
        else:
            from serving.cli.http_server import serve_on  # noqa: PLC0415 - as above

            asyncio.run(serve_on(bound, settings))
