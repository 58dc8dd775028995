"""What the lifespan opened, as dependencies of the routes."""

from typing import Annotated

from fastapi import Depends, Request

from graphs import Chatbot
from serving.http.running import RunningTurns


def _bot(request: Request) -> Chatbot:
    bot: Chatbot = request.app.state.bot
    return bot


def _running(request: Request) -> RunningTurns:
    running: RunningTurns = request.app.state.running
    return running


Bot = Annotated[Chatbot, Depends(_bot)]
Running = Annotated[RunningTurns, Depends(_running)]
