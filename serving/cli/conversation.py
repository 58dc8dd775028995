"""A conversation in the terminal: where it is, what was chosen, and how an answer is shown."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from rich.console import Console

from chatbot.domain import Turn, checked_id
from chatbot.errors import ChatbotError, InputError
from chatbot.events import Event
from graphs.conversation import Choices, Options
from graphs.synchronous import SyncChatbot
from serving.cli.reply import Reply
from serving.cli.views import view_of_turn
from serving.cli.words import complain, in_one_line

QUOTED = 60
LOOKED_BACK = 20  # turns, since those that were replaced do not count


@dataclass(kw_only=True)
class Conversation:
    """What is being talked about where, and the last reply.

    `images` go with the next question. A choice that is None is the default, also for what is
    answered again; one that is left out is then as it was.
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
        choices: Choices = {
            **self.choices,
            "session_id": self.session_id,
            "images": list(self.images),
        }
        self._ask(self.bot.stream(question, **choices))

    def regenerate(self) -> None:
        """Have the last question answered again, in the place of the last answer.

        Raises:
            InputError: Nothing was asked here yet.
        """
        last = self.last_turn()
        self._show(self.bot.regenerate(self.session_id, last.id, **self._options()))

    def edit(self, question: str) -> None:
        """Ask another question in the place of the last one, with its images if no others.

        Raises:
            InputError: Nothing was asked here yet.
        """
        last, options = self.last_turn(), self._options()
        if self.images:
            options["images"] = list(self.images)
        self._ask(self.bot.edit(self.session_id, last.id, question, **options))

    def last_turn(self) -> Turn:
        """Return the last turn of the session.

        Raises:
            InputError: Nothing was asked here yet.
        """
        turns = self.bot.turns(self.session_id, user_id=self.user_id, limit=LOOKED_BACK)
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
        self.tell(self.place())

    def place(self) -> str:
        """Return where the conversation is: the session, and what was asked there last."""
        try:
            last = in_one_line(self.last_turn().question, QUOTED)
        except InputError:
            return f"Session {self.session_id}."
        except ChatbotError as error:
            return f"Session {self.session_id}. {error.message}"
        return f"Session {self.session_id}, last asked: {last}"

    @property
    def user_id(self) -> str | None:
        """Whose sessions these are; nothing for the anonymous user's."""
        return self.choices.get("user_id")

    def tell(self, words: str) -> None:
        """Say something beside the conversation."""
        self.console.print(words, style="dim")

    def _ask(self, events: Generator[Event, None, None]) -> None:
        self._show(events)
        if self.reply.error is None:
            self.images.clear()  # after a failure they are there for the next try

    def _options(self) -> Options:
        options = {name: value for name, value in self.choices.items() if name != "session_id"}
        return cast("Options", options)

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
