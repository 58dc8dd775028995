"""What the events of one turn added up to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from chatbot.events import Event
from serving.cli.words import in_one_line


@dataclass(kw_only=True)
class Reply:
    """An answer as far as it has come."""

    text: str = ""
    citations: Sequence[Mapping[str, Any]] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)
    finish_reason: str | None = None
    error: Mapping[str, Any] | None = None

    def add(self, event: Event) -> None:
        """Take in one event."""
        data = event["data"]
        match event["type"]:
            case "content":
                self.text += data
            case "metadata":
                self.metadata = data
            case "citations":
                self.citations = data
            case "usage":
                self.usage = data
            case "end":
                self.text = data["full_answer"]
                self.finish_reason = data["finish_reason"]
                self.metadata = data["metadata"]
            case "error":
                self.error = data

    @property
    def degraded(self) -> Sequence[str]:
        """What did not work as it should, a sentence for each part."""
        return [
            reason if part.lower() in reason.lower() else f"{part}: {reason}"
            for entry in self.metadata.get("degraded", ())
            for part, reason in [(entry["part"], in_one_line(entry["reason"]))]
        ]

    def json(self) -> dict[str, Any]:
        """Return it as `ask --json` prints it."""
        found: dict[str, Any] = {
            "answer": self.text,
            "citations": list(self.citations),
            "metadata": dict(self.metadata),
            "usage": dict(self.usage),
            "finish_reason": self.finish_reason,
        }
        return found if self.error is None else {**found, "error": dict(self.error)}


def source_line(citation: Mapping[str, Any]) -> str:
    """Return the line of a citation: number, document, location, score."""
    parts = (citation["document"], citation.get("location"), f"{citation['score']:.2f}")
    return f"[{citation['number']}] " + " · ".join(in_one_line(part) for part in parts if part)
