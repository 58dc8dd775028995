"""The `chatbot` command: chat, ask, serve and see what is wrong, from a terminal."""


def main() -> None:
    """Run the command that the process was started with, and exit with its code."""
    from serving.cli.app import run  # noqa: PLC0415 - importing the package stays free

    run()
