"""The process that runs `langgraph dev`; it ends when the one that started it is gone."""

import os
import signal
import sys
import threading
import time

GRACE_SECONDS = 10


def _end_with_parent() -> None:
    os.read(0, 1)  # nothing is ever sent: the end means that the parent is gone
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(GRACE_SECONDS)
    os._exit(1)


def main() -> None:
    """Run the LangGraph server with the arguments of this process."""
    from langgraph_cli.cli import cli  # noqa: PLC0415 - part of the extra `server`

    from chatbot.logs import configure_levels  # noqa: PLC0415
    from chatbot.settings import Settings  # noqa: PLC0415

    configure_levels(Settings.load())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    cli(["dev", *sys.argv[1:]], prog_name="langgraph")


if __name__ == "__main__":
    main()
