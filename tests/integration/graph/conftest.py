from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import pytest
from langsmith import configure

from chatbot.history.local import LocalChatHistory
from chatbot.limits import Limits
from chatbot.ports import Ports
from chatbot.tasks import Background
from graphs import Chatbot
from tests.ports import InMemoryKnowledgeBase, Said, ScriptedChatModel, passage
from tests.trajectories import Traces, recording

BENEFITS = passage("benefits: 15 days of leave a year")
POND = passage("瓦尔登湖 湖水清澈，风景优美").__class__(
    id="2",
    text="瓦尔登湖 湖水清澈，风景优美",
    document="瓦尔登湖.md",
    document_id="2",
    assistant="瓦尔登湖",
    score=0.8,
)


@pytest.fixture(scope="session")
def recorded(nobodys_settings: Mapping[str, str]) -> Iterator[Traces]:
    """A sink that all tests share: what one of them left open goes nowhere else."""
    with recording(nobodys_settings) as traces:
        yield traces


@pytest.fixture
def traces(recorded: Traces) -> Iterator[Traces]:
    """Let the turns of this test be traced."""
    configure(client=recorded.client, enabled=True)
    yield recorded
    configure(client=None, enabled=None)


class Bench:
    """A chatbot on ports that a test looks into."""

    def __init__(self, history: LocalChatHistory) -> None:
        self.history = history
        self.model = ScriptedChatModel()
        self.knowledge = InMemoryKnowledgeBase(
            passages={"handbook": [BENEFITS], "瓦尔登湖": [POND]}
        )
        self.background = Background()
        self.limits = Limits(
            turn_seconds=60, router_seconds=30, knowledge_seconds=30, prefetch=0
        )

    def script(self, *said: Said) -> None:
        self.model.script.extend(said)

    @property
    def bot(self) -> Chatbot:
        return self.bot_with()

    def bot_with(self, **ports: Any) -> Chatbot:
        """Return a chatbot with these ports beside the usual ones."""
        usual = {
            "history": self.history,
            "knowledge": self.knowledge,
            "model": self.model,
            "limits": self.limits,
            "background": self.background,
        }
        return Chatbot(Ports(**{**usual, **ports}))

    def asked(self, number: int) -> str:
        """Return the last message of the n-th prompt."""
        return self.model.asked(number)

    def used_up(self) -> bool:
        return not self.model.script


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    history = LocalChatHistory(":memory:")
    await history.open()
    made = Bench(history)
    yield made
    await made.background.close()
    await history.close()


def kinds(events: Sequence[object]) -> list[str]:
    """Return the types of the events, runs of the same type once."""
    found: list[str] = []
    for event in events:
        assert isinstance(event, dict)
        if not found or found[-1] != event["type"]:
            found.append(event["type"])
    return found


def prompt(bench: Bench) -> list[str]:
    """Return the texts of the last prompt without its instructions."""
    return [str(message.content) for message in bench.model.prompts[-1][1:]]
