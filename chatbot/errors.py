"""The errors that are raised on purpose.

ChatbotError
├── ConfigurationError            a setting is wrong: nothing works until it is corrected
│   └── PromptError               a prompt file is missing or has a wrong hole
├── InputError                    the caller sent something that cannot be used
│   ├── TooLargeError             more was sent than may be
│   └── ImageError                an image cannot be used; `kind` says why
├── BusyError                     the session is answering another question
│   └── TakenOverError            it does because this turn was not heard of for too long
├── StoppedError                  somebody stopped the answer
├── DeadlineError                 the turn took longer than it may
├── ModelError                    the model refused or failed; `kind` says how
│   └── SchemaError               the model's JSON does not fit; `text` is what it gave
└── UnavailableError              a service gave no usable answer: the turn degrades
    ├── HistoryError
    └── KnowledgeBaseError        `kind` says how
"""

from collections.abc import Mapping, Sequence
from typing import Literal

KnowledgeFailure = Literal["unavailable", "forbidden", "not_found", "argument", "protocol"]
ImageFailure = Literal[
    "too_many", "too_large", "wrong_type", "not_allowed", "unreachable", "gone"
]
ModelFailure = Literal[
    "rate_limit",
    "auth",
    "bad_request",
    "context_too_long",
    "content_filter",
    "timeout",
    "connection",
    "server",
    "protocol",
    "interrupted",
    "unsupported",
]


class ChatbotError(RuntimeError):
    """An error with a stable code and a sentence for people.

    `message` never carries a secret, a header, a stack trace, or where a service is. `in_full`
    may say the last, to those who run the chatbot. `retryable` says whether the same request
    may succeed later, `retry_after` in how many seconds, where that is known.

    It is a RuntimeError because LangGraph's server tells its clients the message of no other.
    """

    code = "internal"
    retryable = False

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after = retry_after

    @property
    def in_full(self) -> str:
        """The message with the addresses that belong to it.

        It is a note of the exception: so logs and traces show it, and nothing else does.
        """
        return str([self.message, *getattr(self, "__notes__", ())][-1])

    def tell_in_full(self, message: str) -> None:
        """Say the same with addresses."""
        if message != self.in_full:
            self.add_note(message)


class ConfigurationError(ChatbotError):
    """A setting is missing or wrong."""

    code = "configuration"


class PromptError(ConfigurationError):
    """A prompt file is missing, unreadable, or asks for a value that nobody gives."""

    code = "prompt"


class InputError(ChatbotError):
    """The request cannot be used as it is."""

    code = "invalid_input"


class TooLargeError(InputError):
    """More was sent than may be."""

    code = "too_large"


class ImageError(InputError):
    """An image cannot be used.

    `code` is `image_` and the kind; only one that could not be fetched is worth another try.
    """

    def __init__(self, kind: ImageFailure, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.code = f"image_{kind}"
        self.retryable = kind == "unreachable"


class BusyError(ChatbotError):
    """The session is still answering another question."""

    code = "busy"
    retryable = True


class TakenOverError(BusyError):
    """Another turn has the session now: this one was not heard of for too long."""

    code = "taken_over"

    def __init__(self) -> None:
        super().__init__(
            "The answer stood still for so long that the conversation went on without it. "
            "What it had said is kept.",
            retry_after=1,
        )


class StoppedError(ChatbotError):
    """Somebody stopped the answer; what was said is kept."""

    code = "stopped"

    def __init__(self) -> None:
        super().__init__("The answer was stopped.")


class DeadlineError(ChatbotError):
    """The turn took longer than `TURN_TIMEOUT_SECONDS`."""

    code = "deadline"
    retryable = True


class ModelError(ChatbotError):
    """The model refused the request or failed while it answered.

    `code` is `model_` and the kind. Rate limits, timeouts, and failures of connection or server
    are worth another try; a refused request is not. `endpoint` and `model` are those that were
    asked last, `attempts` all that failed.
    """

    endpoint: str | None = None
    model: str | None = None
    attempts: Sequence[Mapping[str, str]] = ()

    def __init__(
        self, kind: ModelFailure, message: str, *, retry_after: float | None = None
    ) -> None:
        super().__init__(message, retry_after=retry_after)
        self.kind = kind
        self.code = f"model_{kind}"
        self.retryable = kind in {
            "rate_limit",
            "timeout",
            "connection",
            "server",
            "protocol",
            "interrupted",
        }


class SchemaError(ModelError):
    """The model gave nothing that fits the schema; `text` is the last that it gave."""

    def __init__(self, message: str, *, text: str) -> None:
        super().__init__("protocol", message)
        self.code = "model_schema"
        self.text = text


class UnavailableError(ChatbotError):
    """A service gave no usable answer."""

    code = "unavailable"
    retryable = True


class HistoryError(UnavailableError):
    """The conversation could not be read or written."""

    code = "history_unavailable"


class KnowledgeBaseError(UnavailableError):
    """The knowledge base gave no usable answer.

    `code` is `knowledge_` and the kind; only an unavailable one is worth another try.
    """

    def __init__(
        self, kind: KnowledgeFailure, message: str, *, retry_after: float | None = None
    ) -> None:
        super().__init__(message, retry_after=retry_after)
        self.kind = kind
        self.code = f"knowledge_{kind}"
        self.retryable = kind in {"unavailable", "protocol"}
