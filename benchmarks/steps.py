"""What every system that is compared is told: prompts, tools, and where the services are."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODEL = "qwen-benchmark"
CORES = sorted(os.sched_getaffinity(0))
OF_SYSTEM = CORES[-1:]  # what is measured has one core, and to itself where there are more
OF_SERVICES = CORES[:-1] or CORES
PASSAGES = 6
SECONDS = 120.0  # of patience, for a request and for a job: the machine may be slow
_PROMPTS = Path(__file__).resolve().parent.parent / "prompts"


@dataclass(frozen=True, kw_only=True)
class Services:
    """Where the model, RAGFlow and, if any is used, MongoDB are."""

    model: str
    ragflow: str
    key: str
    mongodb: str = ""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of a call to RAGFlow."""
        return {"Authorization": f"Bearer {self.key}"}


class Told:
    """The same words for all: our own prompts, with the assistants that RAGFlow has."""

    def __init__(self, listed: Mapping[str, Any]) -> None:
        self._datasets = {chat["name"]: chat["dataset_ids"] for chat in listed["data"]["chats"]}
        described = "\n".join(
            f"- {chat['name']}: {chat['description']}" for chat in listed["data"]["chats"]
        )
        self.router = _prompt("router").replace("$assistants", described)
        self.answer = _prompt("answer")
        self.chat = _prompt("chat")
        self.names = list(self._datasets)

    def parameters(self, *, follow_up: bool) -> dict[str, Any]:
        """Return the JSON schema of a call of `knowledge_base`."""
        names = {"type": "array", "items": {"type": "string", "enum": self.names}}
        properties: dict[str, Any] = {"assistants": names}
        if follow_up:
            properties["question"] = {"type": "string"}
        return {"type": "object", "properties": properties, "required": list(properties)}

    def retrieval(self, query: str, names: Sequence[str]) -> dict[str, Any]:
        """Return the body of RAGFlow's retrieval."""
        ids = [id_ for name in names for id_ in self._datasets[name]]
        return {"question": query, "dataset_ids": ids, "page_size": PASSAGES}


TASK = "<passages>\n{passages}\n</passages>\n\n<question>\n{question}\n</question>"


def _prompt(name: str) -> str:
    return (_PROMPTS / f"{name}.md").read_text("utf-8")
