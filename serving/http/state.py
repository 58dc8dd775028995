"""What the lifespan opened, as dependencies of the routes."""

from typing import Annotated

from fastapi import Depends, Request

from graphs import Chatbot
from serving.http.running import RunningTurns
from serving.http.suggestions import SuggestedQuestions


def _bot(request: Request) -> Chatbot:
    bot: Chatbot = request.app.state.bot
    return bot


def _running(request: Request) -> RunningTurns:
    running: RunningTurns = request.app.state.running
    return running


def _suggestions(request: Request) -> SuggestedQuestions:
    suggestions: SuggestedQuestions = request.app.state.suggestions
    return suggestions


Bot = Annotated[Chatbot, Depends(_bot)]
Running = Annotated[RunningTurns, Depends(_running)]
Suggestions = Annotated[SuggestedQuestions, Depends(_suggestions)]
