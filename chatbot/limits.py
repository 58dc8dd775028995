"""How much a turn may use."""

from dataclasses import dataclass

from chatbot.errors import TooLargeError


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How much a turn may use. Times are in seconds.

    `prefetch` is the number of assistants that are asked while the router thinks, on a first
    turn; 0 asks none. `head_start` begins the answer from what they found before the router
    has said which of them it means. `route_early` goes on before the router's call ends, and
    lists the assistants beside the history: without it there is no head start either.
    """

    turn_seconds: float = 120
    wait_seconds: float = 20
    router_seconds: float = 15
    knowledge_seconds: float = 15
    history_turns: int = 20
    passages: int = 6
    summarize: bool = False
    route_early: bool = True
    prefetch: int = 3
    head_start: bool = True
    question_characters: int = 100_000

    def check_question(self, question: str) -> None:
        """Refuse a question that is too long.

        Raises:
            TooLargeError: It is.
        """
        most = self.question_characters
        if len(question) > most:
            message = f"A question may have {most} characters; this one has {len(question)}."
            raise TooLargeError(message)
