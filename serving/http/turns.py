"""Begins turns: the one way from a request of whatever form to a running answer."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Unpack

from fastapi import Depends, Request

from chatbot.domain import Session, Turn
from chatbot.settings import Settings
from graphs import Chatbot
from graphs.conversation import Choices
from graphs.stateless import Stateless
from serving.auth import Identity
from serving.http.quotas import Quotas
from serving.http.running import RunningTurn, RunningTurns


@dataclass(frozen=True, kw_only=True, slots=True)
class Turns:
    """Starts the turns of one process, as far as their callers may have them."""

    bot: Chatbot
    stateless: Stateless
    running: RunningTurns
    quotas: Quotas
    settings: Settings

    async def ask(
        self, caller: Identity, question: str, **choices: Unpack[Choices]
    ) -> RunningTurn:
        """Begin to answer a question of the caller, whoever the choices name.

        Raises:
            TooLargeError: The question is too long.
            TooManyError: The caller, or everybody, has asked as much as may be for now.
            InputError: The session id has the wrong form.
        """
        self.bot.ports.limits.check_question(question)
        session = Session(
            session_id=choices.get("session_id") or self.settings.default_session_id,
            user_id=caller.user_id,
        )
        await self.running.settled(session.user_id, session.session_id)
        return await self._start(self.bot, session, caller, question, choices)

    async def reply(
        self,
        caller: Identity,
        question: str,
        earlier: Sequence[Turn],
        **choices: Unpack[Choices],
    ) -> RunningTurn:
        """Begin to answer a question after turns that the caller keeps; nothing is kept here.

        Raises:
            TooLargeError: The question is too long.
            TooManyError: The caller, or everybody, has asked as much as may be for now.
        """
        self.bot.ports.limits.check_question(question)
        session = self.stateless.give(earlier, user_id=caller.user_id)
        try:
            turn = await self._start(self.stateless.bot, session, caller, question, choices)
        except BaseException:
            self.stateless.forget(session)
            raise
        turn.task.add_done_callback(lambda _: self.stateless.forget(session))
        return turn

    async def _start(
        self, bot: Chatbot, session: Session, caller: Identity, question: str, choices: Choices
    ) -> RunningTurn:
        at_end = await self.quotas.admit(caller)
        choices["session_id"], choices["user_id"] = session.session_id, session.user_id
        choices["permitted"] = caller.assistants
        turn_id = str(uuid.uuid4())
        events = bot.stream(question, turn_id=turn_id, **choices)
        return self.running.start(session, events, turn_id=turn_id, at_end=at_end)


def _turns(request: Request) -> Turns:
    state = request.app.state
    return Turns(
        bot=state.bot,
        stateless=state.stateless,
        running=state.running,
        quotas=state.quotas,
        settings=state.settings,
    )


TurnStarter = Annotated[Turns, Depends(_turns)]
