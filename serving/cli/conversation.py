"""A conversation in the terminal: where it is, what was chosen, and how an answer is shown."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from chatbot.domain import Turn, checked_id
from chatbot.errors import InputError
from chatbot.events import Event
from graphs.conversation import Choices
from graphs.images import addresses_of
from graphs.synchronous import SyncChatbot
from serving.cli.reply import Reply
from serving.cli.views import view_of_turn
from serving.cli.words import complain

LOOKED_BACK = 20  # turns, since those that were replaced do not count


@dataclass(kw_only=True)
class Conversation:
    """What is being talked about where, and the last reply.

    `images` go with the next question.
    """

    bot: SyncChatbot
    console: Console
    session_id: str
    choices: Choices
    images: list[str | Path] = field(default_factory=list)
    reply: Reply = field(default_factory=Reply)
    goes_on: bool = True

    def ask(self, question: str) -> None:
        """Ask and show the answer."""
        self._ask(question, {**self._chosen(), "images": list(self.images)})

    def regenerate(self) -> None:
        """Have the last question answered again, in the place of the last answer.

        Raises:
            InputError: Nothing was asked here yet.
        """
        last = self.last_turn()
        images = addresses_of(last)
        chosen: Choices = {**self._chosen(), "images": images, "replaces": last.id}
        self._show(self.bot.stream(last.question, **chosen))

    def edit(self, question: str) -> None:
        """Ask another question in the place of the last one, with its images if no others.

        Raises:
            InputError: Nothing was asked here yet.
        """
        last = self.last_turn()
        images = list(self.images) or addresses_of(last)
        self._ask(question, {**self._chosen(), "images": images, "replaces": last.id})

    def last_turn(self) -> Turn:
        """Return the last turn of the session.

        Raises:
            InputError: Nothing was asked here yet.
        """
        turns = self.bot.turns(self.session_id, limit=LOOKED_BACK)
        if not turns:
            message = "Nothing was asked here yet."
            raise InputError(message)
        return turns[-1]

    def switch(self, session_id: str) -> None:
        """Go on in another session.

        Raises:
            InputError: The name has the wrong form.
        """
        self.session_id = checked_id(session_id, "session id")
        self.reply = Reply()
        self.tell(f"Session {session_id}.")

    def tell(self, words: str) -> None:
        """Say something beside the conversation."""
        self.console.print(words, style="dim")

    def _ask(self, question: str, chosen: Choices) -> None:
        self._show(self.bot.stream(question, **chosen))
        if self.reply.error is None:
            self.images.clear()  # after a failure they are there for the next try

    def _chosen(self) -> Choices:
        return {**self.choices, "session_id": self.session_id}

    def _show(self, events: Generator[Event, None, None]) -> None:
        """Show an answer as it comes; Ctrl-C stops it, and what was said is kept."""
        stopped = False
        with view_of_turn(self.console) as view:
            try:
                with closing(events):
                    for event in events:
                        view.show(event)
            except KeyboardInterrupt:
                stopped = True
        self.reply = view.reply
        if stopped:
            complain("(stopped; what was said so far is kept)")
        if self.console.is_terminal:
            self.console.print()
