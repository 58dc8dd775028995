"""The events of a turn: the public protocol, the same over every way in.

`stage`* · `metadata` · (`stage` | `reasoning` | `content`)* · `citations`? · `usage`? ·
`end` | `error`. Exactly one `end` or `error` closes a turn.
"""

from typing import Any, Literal, TypedDict

from chatbot.errors import ChatbotError, SchemaError

EventType = Literal[
    "stage", "metadata", "reasoning", "content", "citations", "usage", "end", "error"
]
CLOSING: frozenset[EventType] = frozenset({"end", "error"})


class Event(TypedDict):
    """One event. What `data` holds follows from `type`.

    - `stage`: `name` (`loading`, `routing`, `rewriting`, `searching`, `answering`), `detail`
    - `metadata`: `session_id`, `turn_id`, `intent`, `reason`, `original_query`,
      `enhanced_query`, `assistants` (names), `degraded` (a list of `part` and `reason`)
    - `reasoning`, `content`: a piece of text, as a string
    - `citations`: a list of `number`, `document`, `document_id`, `assistant`, `text`, `score`,
      `location`, `url`
    - `usage`: `input_tokens`, `output_tokens`, `model`, `first_token_ms`, `total_ms`, `timings`
      (milliseconds per step)
    - `end`: `full_answer`, `finish_reason`, `metadata` (as above, `degraded` completed). Where
      an assistant of RAGFlow answered by itself, the pieces may hold markers that are no more
      in `full_answer`, or lack some: only at its end it tells what they mean.
    - `error`: `code`, `message`, `retryable`, `retry_after` (seconds or null),
      `partial_answer`, and `last_text` where an answer did not fit its schema
    """

    type: EventType
    data: Any


def error_data(error: ChatbotError, partial_answer: str = "") -> dict[str, Any]:
    """Return the data of the `error` event for `error`."""
    data: dict[str, Any] = {
        "code": error.code,
        "message": error.message,
        "retryable": error.retryable,
        "retry_after": error.retry_after,
        "partial_answer": partial_answer,
    }
    if isinstance(error, SchemaError):
        data["last_text"] = error.text
    return data
