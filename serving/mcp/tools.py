"""The tools that the bot offers to other programs' models."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mcp.types import Tool, ToolAnnotations

from chatbot.domain import Assistant, checked_id
from chatbot.errors import InputError
from graphs import Chatbot
from serving.auth import Identity

MOST_PASSAGES = 30
LONGEST_QUERY = 2_000
_READS = ToolAnnotations(readOnlyHint=True, openWorldHint=False)
_ASSISTANTS = {
    "type": "array",
    "items": {"type": "string"},
    "maxItems": 20,
    "description": "Names of the only assistants to ask; left out, they are chosen.",
}

TOOLS = (
    Tool(
        name="list_assistants",
        title="List assistants",
        description="List the parts of the knowledge base, and what each of them knows.",
        inputSchema={"type": "object", "properties": {}, "additionalProperties": False},
        annotations=_READS,
    ),
    Tool(
        name="search_knowledge",
        title="Search the knowledge base",
        description="Find passages of the company's documents that are about a query. "
        "No model is asked. Each passage has its document, its place in it and a score.",
        inputSchema={
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": LONGEST_QUERY,
                    "description": "What to look for, as a question that stands alone.",
                },
                "assistants": _ASSISTANTS,
                "limit": {"type": "integer", "minimum": 1, "maximum": MOST_PASSAGES},
            },
            "required": ["query"],
            "additionalProperties": False,
        },
        annotations=_READS,
    ),
    Tool(
        name="ask",
        title="Ask the chatbot",
        description="Ask a question and get an answer with numbered citations. Questions with "
        "the same session_id are one conversation.",
        inputSchema={
            "type": "object",
            "properties": {
                "question": {"type": "string", "minLength": 1},
                "session_id": {"type": "string", "minLength": 1, "maxLength": 200},
                "assistants": _ASSISTANTS,
            },
            "required": ["question"],
            "additionalProperties": False,
        },
    ),
)

Admit = Callable[[Identity], Awaitable[Callable[[], None]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Toolkit:
    """Does what the tools say. `admit` counts a turn and gives what is to be called at its end.

    Of a question without a session nothing is kept that anybody could go on with: it stands
    in one of its own.
    """

    bot: Chatbot
    admit: Admit
    passages: int

    async def call(
        self, name: str, arguments: Mapping[str, Any], caller: Identity, session_id: str
    ) -> dict[str, Any]:
        """Return what a tool gives. The arguments fit its schema; `session_id` is the default.

        Raises:
            ChatbotError: It could not be done.
        """
        if name == "list_assistants":
            return {"assistants": [asdict(each) for each in await self._permitted(caller)]}
        names = arguments.get("assistants") or ()
        if name == "search_knowledge":
            chosen = self._named(await self._permitted(caller), names)
            return await self._search(arguments, chosen)
        return await self._ask(arguments, names, caller, session_id)

    async def _search(
        self, arguments: Mapping[str, Any], chosen: Sequence[Assistant]
    ) -> dict[str, Any]:
        limit = int(arguments.get("limit") or self.passages)
        found = await self.bot.search(arguments["query"], assistants=chosen, limit=limit)
        return {
            "passages": [asdict(each) for each in found.shown],
            "failures": dict(found.failures),
        }

    async def _ask(
        self,
        arguments: Mapping[str, Any],
        names: Sequence[str],
        caller: Identity,
        session_id: str,
    ) -> dict[str, Any]:
        question = arguments["question"]
        self.bot.ports.limits.check_question(question)
        session = checked_id(arguments.get("session_id") or session_id, "session id")
        at_end = await self.admit(caller)
        try:
            answer = await self.bot.ask(
                question,
                session_id=session,
                user_id=caller.user_id,
                permitted=caller.assistants,
                assistants=list(names) or None,
            )
        finally:
            at_end()
        return {
            "answer": answer.text,
            "citations": list(answer.citations),
            "session_id": session,
            "degraded": answer.metadata["degraded"],
        }

    async def _permitted(self, caller: Identity) -> Sequence[Assistant]:
        return await self.bot.assistants(permitted=caller.assistants)

    @staticmethod
    def _named(known: Sequence[Assistant], names: Sequence[str]) -> Sequence[Assistant]:
        if missing := [name for name in names if name not in {each.name for each in known}]:
            message = f"There is no assistant named {', '.join(missing)}."
            raise InputError(message)
        return [each for each in known if each.name in names] if names else known
