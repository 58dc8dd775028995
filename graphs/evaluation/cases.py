"""The labelled questions of an evaluation, and the sets that they come in."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from chatbot.domain import Intent
from chatbot.errors import InputError
from chatbot.text import language
from chatbot.validation import rule_of

SHIPPED = Path(__file__).parent / "sets"
NAMES = ("routing", "rewriting", "retrieval", "answers")
LONGEST_NAME = 60

Text = Annotated[str, Field(min_length=1)]
# Something to be found: a text, or several of which one is enough.
OneOf = Text | Annotated[tuple[Text, ...], Field(min_length=1)]
Step = Literal["search", "route", "enhance_query", "retrieve", "answer"]


class Earlier(BaseModel):
    """A turn before the question."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: Text
    answer: str = ""
    route: Intent = "knowledge_base"


class Case(BaseModel):
    """A question, and what should become of it. What is left out is not measured.

    `route` is the right decision. `keep` must stand in the question as it is searched for.
    `find` are documents that answer it, as `name` or `name#words of the passage`. `facts` must
    stand in the answer, `avoid` must not, nor in the question that is searched for.
    `answerable` is false where the documents do not know. `reference` is a right answer, for a
    judge. `documents` (name and text) are found in place of the knowledge base's.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = ""
    kind: str = ""
    question: Text
    earlier: tuple[Earlier, ...] = ()
    documents: Mapping[Text, Text] = {}
    route: Intent | None = None
    keep: tuple[OneOf, ...] = ()
    find: tuple[OneOf, ...] = ()
    facts: tuple[OneOf, ...] = ()
    avoid: tuple[Text, ...] = ()
    answerable: bool | None = None
    reference: str = ""

    @model_validator(mode="after")
    def _expects_something(self) -> Self:
        if not (self.route or self.keep or self.find or self.facts) and self.answerable is None:
            message = (
                "it says nothing of what is expected: route, keep, find, facts, answerable"
            )
            raise ValueError(message)
        return self

    @property
    def language(self) -> str:
        """The language of the question."""
        return language(self.question)

    @property
    def last_step(self) -> Step:
        """How far a turn has to go; `search` asks the knowledge base and no model."""
        if self.facts or self.answerable is not None:
            return "answer"
        if self.find:
            return "retrieve" if self.earlier or self.route else "search"
        return "enhance_query" if self.keep else "route"


def find_set(name: str) -> tuple[str, Sequence[Case]]:
    """Return a shipped set by its name, else the one in a file, with what it is called.

    Raises:
        InputError: There is no such set, or something in it cannot be read.
    """
    if name in NAMES:
        return name, read_set(SHIPPED / f"{name}.jsonl")
    path = Path(name)
    if not path.is_file():
        known = ", ".join(NAMES)
        message = f"There is no set {name}: name one of {known}, or a file of JSON lines."
        raise InputError(message)
    return path.stem[:LONGEST_NAME], read_set(path)


def read_set(path: Path) -> Sequence[Case]:
    """Return the cases of a file, one JSON object a line. A case without an id gets one.

    Raises:
        InputError: The file cannot be read, or a line is no case. Names the line.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path} cannot be read as UTF-8 text: {error}."
        raise InputError(message) from None
    cases: dict[str, Case] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            case = Case.model_validate_json(line)
        except ValidationError as error:
            message = f"{path}, line {number}: {_reason(error)}"
            raise InputError(message) from None
        case = case if case.id else case.model_copy(update={"id": case.question})
        if case.id in cases:
            message = (
                f"{path}, line {number}: there is another case {case.id!r}; give it an id."
            )
            raise InputError(message)
        cases[case.id] = case
    if not cases:
        message = f"{path} has no cases."
        raise InputError(message)
    return list(cases.values())


def sample(cases: Sequence[Case], limit: int | None) -> Sequence[Case]:
    """Return at most `limit` of the cases, from all over the set."""
    if limit is None or limit >= len(cases):
        return cases
    return [cases[at * len(cases) // limit] for at in range(limit)]


def expected(case: Case) -> Mapping[str, object]:
    """Return what was expected of a case, as plain JSON."""
    found: Mapping[str, object] = json.loads(
        case.model_dump_json(
            exclude={"id", "kind", "question", "earlier"}, exclude_defaults=True
        )
    )
    return found


def _reason(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {rule_of(first)}" if where else rule_of(first)
