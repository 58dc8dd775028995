"""Builds what the model is given: the one place where messages are put together."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from chatbot.domain import Assistant, Passage, Turn
from chatbot.earlier_turns import IMAGE, history_messages, shortened, with_images
from chatbot.prompts import Prompts

RECENT_INTENTS = 5
ROUTER_TURNS = 4
ROUTER_CHARACTERS = 4_000
ROUTER_TOKENS = 30_000  # that the longest texts in a prompt of the router may have
FIXED_TOKENS = 1_000  # of that prompt without them
DESCRIPTION_CHARACTERS = 500  # of an assistant
HISTORY_CHARACTERS = 24_000
_TAG = re.compile(r"<(?=\s*/?\s*(?:passages?|question|documents)\b)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True, slots=True)
class MessagePipeline:
    """The prompts of one turn: its question, what was said before, and how to answer.

    `instructions` are the persona of this run, `language` the answer's ("" for the question's).
    `with_tools` shows the model what earlier turns got from tools; it must be offered some.
    `wish` is what else the instructions ask for, `today` the user's date. `summary` is of what
    was said before `turns`; `budget` the tokens that a prompt may have, where that is known.
    `images` are the question's, as blocks, and
    `earlier_images` those of earlier turns, by their ids, that are shown once more.
    """

    prompts: Prompts
    question: str
    turns: Sequence[Turn] = ()
    instructions: str = ""
    language: str = ""
    with_tools: bool = False
    wish: str = ""
    today: str = ""
    budget: int | None = None
    summary: str = ""
    images: Sequence[Mapping[str, Any]] = ()
    earlier_images: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    def for_router(self, assistants: Sequence[Assistant]) -> list[BaseMessage]:
        """Return what the router sees: assistants, last intents, recent turns, question."""
        intents = [turn.intent for turn in self.turns if turn.intent][-RECENT_INTENTS:]
        system = self.prompts.render(
            "router",
            assistants=_listed(assistants, self._scaled(DESCRIPTION_CHARACTERS))
            or "(none at the moment)",
            intents=", ".join(intents) or "(none yet)",
        )
        return [SystemMessage(system), *self._shortened()]

    def for_rewriting(self) -> list[BaseMessage]:
        """Return what the model sees when it makes a follow-up stand alone."""
        return [SystemMessage(self.prompts.render("rewrite_question")), *self._shortened()]

    def for_answer(
        self, query: str, passages: Sequence[Passage], nearest: Sequence[str] = ()
    ) -> list[BaseMessage]:
        """Return what the model sees when it answers from passages, numbered from 1.

        Without passages the model is told that nothing was found, and the names of the
        documents that come nearest. The passages stand in the
        last message, as data between tags that their own text cannot close; the same message
        carries them in `additional_kwargs`, for a model that quotes instead of writing.
        """
        asked = self.question if query == self.question else f"{self.question}\n({query})"
        if passages:
            body = "\n".join(
                rendered(number, found) for number, found in enumerate(passages, 1)
            )
            task = f"<passages>\n{body}\n</passages>"
        else:
            task = self.prompts.render("nothing_found")
            if nearest:
                documents = "\n".join(f"- {_inert(_line(name))}" for name in nearest)
                task += f"\n\n{self.prompts.render('nearest_documents', documents=documents)}"
        extra: dict[str, Any] = {
            "question": query,
            "asked": self.question,
            "passages": [
                {"number": number, **asdict(found)} for number, found in enumerate(passages, 1)
            ],
            "nearest": [] if passages else list(nearest),
            "outcome": "found" if passages else "empty",
        }
        content = f"{task}\n\n<question>\n{_inert(asked)}\n</question>"
        return [
            SystemMessage(self._system("answer")),
            *self._history(),
            self._asked(content, extra),
        ]

    def for_chat(self, assistants: Sequence[Assistant]) -> list[BaseMessage]:
        """Return what the model sees when it answers without the knowledge base."""
        names = [assistant.name for assistant in assistants]
        subjects = ", ".join(names) or "(none at the moment)"
        return [
            SystemMessage(self._system("chat", assistants=subjects)),
            *self._history(),
            self._asked(self.question, {"question": self.question, "assistants": names}),
        ]

    def _system(self, name: str, **values: str) -> str:
        language = self.language or "the language of the user's latest question"
        text = self.prompts.render(
            name,
            instructions=self.instructions,
            language=language,
            today=self.today or "not known",
            **values,
        )
        return f"{text}\n\n{self.wish}" if self.wish else text

    def for_summary(self) -> list[BaseMessage]:
        """Return what the model sees when it sums up the turns."""
        return [
            SystemMessage(self.prompts.render("summarize")),
            *self._history(),
            HumanMessage(self.prompts.render("summarize_now")),
        ]

    def pairs(self) -> list[list[BaseMessage]]:
        """Return the messages of each turn, oldest first."""
        return [
            history_messages(
                self.prompts, [turn], with_tools=self.with_tools, images=self.earlier_images
            )
            for turn in self.turns
        ]

    def _asked(self, text: str, extra: dict[str, Any]) -> HumanMessage:
        return HumanMessage(with_images(text, self.images), additional_kwargs=extra)

    def _history(self) -> list[BaseMessage]:
        summed: list[BaseMessage] = []
        if self.summary:
            note = self.prompts.render("summary", summary=self.summary)
            summed = [HumanMessage(note), AIMessage(self.prompts.render("summary_noted"))]
        return [*summed, *(message for pair in self.pairs() for message in pair)]

    def _shortened(self) -> list[BaseMessage]:
        """Return the recent turns and the question, long texts without their middle."""
        longest = self._scaled(ROUTER_CHARACTERS)
        recent = history_messages(
            self.prompts, self.turns[-ROUTER_TURNS:], shorten=longest // 4
        )
        question = shortened(self.question, longest)
        return [*recent, HumanMessage(f"{question}\n{IMAGE}" if self.images else question)]

    def _scaled(self, characters: int) -> int:
        """Return so many characters; fewer where the model cannot read the longest prompt."""
        if self.budget is None:
            return characters
        room = max(100, self.budget - FIXED_TOKENS)
        return int(characters * min(1, room / ROUTER_TOKENS))


def text_of(content: str | Sequence[str | Mapping[str, Any]]) -> str:
    """Return the text of a message's content, whether it is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    blocks = (block if isinstance(block, str) else block.get("text", "") for block in content)
    return "".join(block for block in blocks if isinstance(block, str))


def _listed(assistants: Sequence[Assistant], characters: int) -> str:
    return "\n".join(
        f"- {_line(assistant.name)}: {shortened(_line(assistant.description), characters)}"
        for assistant in assistants
    )


def rendered(number: int, passage: Passage) -> str:
    """Return the passage as the model sees it."""
    source = " · ".join(part for part in (passage.document, passage.location) if part)
    head = f'<passage number="{number}" source="{_attribute(source)}">'
    return f"{head}\n{_inert(passage.text)}\n</passage>"


def _inert(text: str) -> str:
    """Return the text so that no part of it can be read as one of our tags."""
    return _TAG.sub("&lt;", text)


def _attribute(text: str) -> str:
    return _line(text).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def _line(text: str) -> str:
    return " ".join(text.split())
