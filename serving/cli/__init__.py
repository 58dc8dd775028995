"""The `chatbot` command: chat, ask, serve and see what is wrong, from a terminal."""

import gc

OBJECTS = 500_000  # about as many as a start makes


def main() -> None:
    """Run the command that the process was started with, and exit with its code."""
    # What modules are made of is no garbage. Servers look again: see `serving.process`.
    gc.set_threshold(OBJECTS)
    from serving.cli.app import run  # noqa: PLC0415 - importing the package stays free

    run()
