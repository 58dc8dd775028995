"""The `chatbot` command: chat, ask, serve and see what is wrong, from a terminal."""

import gc

ALLOCATIONS = 50_000


def main() -> None:
    """Run the command that the process was started with, and exit with its code."""
    # What modules make is no garbage: looking for some at every turn was a fifth of a start.
    gc.set_threshold(ALLOCATIONS)
    from serving.cli.app import run  # noqa: PLC0415 - importing the package stays free

    run()
