"""Why an answer ended, in OpenAI's words, whatever the API calls it."""

# What came so far is all there is, and it is not whole.
BROKEN = frozenset(
    {
        "abort",
        "cancelled",
        "error",
        "insufficient_system_resource",
        "network_error",
    }
)
# A call that came so far may lack something, even where it can be read.
CUTTING = frozenset({"length", "content_filter"})
_OURS = {
    "end_turn": "stop",
    "eos": "stop",
    "eos_token": "stop",
    "malformed_function_call": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_length": "length",
    "tool_use": "tool_calls",
    "prohibited_content": "content_filter",
    "recitation": "content_filter",
    "refusal": "content_filter",
    "safety": "content_filter",
    "sensitive": "content_filter",
}


def finish_reason(given: object) -> str | None:
    """Return the reason that an endpoint gives, or nothing where it gives none yet."""
    word = str(given or "").rpartition(".")[2].lower()  # some packages send `Reason.STOP`
    return None if word in {"", "null", "none"} else _OURS.get(word, word)
