"""Lets RAGFlow's assistants answer, in sessions that live for one question."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import replace

from ragflow_sdk import Chat, Session

from chatbot.citations import CitationFilter
from chatbot.domain import AnswerPiece, Assistant, Findings, Passage, SourceFile
from chatbot.knowledge.fusion import fuse
from chatbot.knowledge.ragflow.completion import pieces
from chatbot.knowledge.ragflow.empty import without
from chatbot.knowledge.ragflow.errors import RagflowError, unusable
from chatbot.knowledge.ragflow.fields import row_of, text
from chatbot.knowledge.ragflow.knowledge_base import MARGIN, RagflowKnowledgeBase, gravest
from chatbot.knowledge.ragflow.tasks import all_within
from chatbot.knowledge.ragflow.transport import RagflowTransport
from chatbot.tasks import end

SILENCE_SECONDS = 60.0
ANSWER_SECONDS = 60.0
CLOSING_SECONDS = 2.0
SESSION_NAME_LENGTH = 60


class RagflowAnswers:
    """RAGFlow's assistants as the knowledge base: each answers, with its own model and prompt.

    `search` gives their answers as passages, each followed by what it refers to, within
    `answer_seconds`; `answer` gives one as it comes, with no silence of `silence_seconds`. Owns
    `knowledge_base`.
    """

    def __init__(
        self,
        transport: RagflowTransport,
        knowledge_base: RagflowKnowledgeBase,
        *,
        silence_seconds: float = SILENCE_SECONDS,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._transport = transport
        self._knowledge_base = knowledge_base
        self._silence_seconds = silence_seconds
        self._answer_seconds = answer_seconds
        self._deleting: set[asyncio.Task[None]] = set()

    async def assistants(self) -> Sequence[Assistant]:
        """See `KnowledgeBase.assistants`."""
        return await self._knowledge_base.assistants()

    async def check(self) -> str:
        """See `KnowledgeBase.check`."""
        return await self._knowledge_base.check()

    async def search(
        self, query: str, *, assistants: Sequence[Assistant], limit: int
    ) -> Findings:
        """See `KnowledgeBase.search`. An answer that refers to nothing counts as none."""
        if not query.strip() or not assistants:
            return Findings()
        asked = list({each.id: each for each in assistants}.values())
        results = await all_within(
            self._answer_seconds * MARGIN,
            (self._passages(each, query) for each in asked),
        )
        errors = [result for result in results if isinstance(result, RagflowError)]
        if len(errors) == len(results):
            raise gravest(errors)
        return Findings(
            passages=fuse((each for each in results if isinstance(each, list)), limit),
            failures={
                each.name: result.message
                for each, result in zip(asked, results, strict=True)
                if isinstance(result, RagflowError)
            },
        )

    async def document(
        self, document_id: str, *, assistants: Sequence[Assistant]
    ) -> SourceFile | None:
        """See `RagflowKnowledgeBase.document`."""
        return await self._knowledge_base.document(document_id, assistants=assistants)

    async def answer(
        self, question: str, assistant: Assistant
    ) -> AsyncGenerator[AnswerPiece, None]:
        """See `Respondent.answer`. Never sent again once it began.

        The words that the assistant has for nothing found are no answer.
        """
        words = await self._knowledge_base.empty_response(assistant)
        question = question.strip().encode(errors="replace").decode()
        async with aclosing(without(words, self._stream(question, assistant))) as stream:
            async for piece in stream:
                passages = self._knowledge_base.addressed(piece.passages)
                yield replace(piece, passages=passages) if passages else piece

    async def _stream(
        self, question: str, assistant: Assistant
    ) -> AsyncGenerator[AnswerPiece, None]:
        chat = Chat(self._transport, {"id": assistant.id})
        name = " ".join(question.split())[:SESSION_NAME_LENGTH] or assistant.name
        envelope = await self._transport.fetch(lambda: chat.create_session(name=name))
        session_id = text(row_of(envelope.get("data")).get("id"))
        if not session_id:
            reason = "a session without an id"
            raise unusable(reason)
        session = Session(self._transport, {"id": session_id, "chat_id": assistant.id})
        try:
            async with self._transport.stream(
                lambda: session.ask(question, stream=True),
                silence_seconds=self._silence_seconds,
            ) as response:
                answer = pieces(self._transport.connection, response, assistant.name)
                async with aclosing(answer):
                    async for piece in answer:
                        yield piece
        finally:
            self._delete(chat, session_id)

    async def close(self) -> None:
        """Close the connections to RAGFlow, when the last sessions there are deleted."""
        if self._deleting:
            await asyncio.wait(self._deleting, timeout=CLOSING_SECONDS)
        await end(*self._deleting)
        await self._knowledge_base.close()

    async def _passages(
        self, assistant: Assistant, question: str
    ) -> list[Passage] | RagflowError:
        """Return the answer as a passage, then what it refers to, the cited ones first."""
        said = ""
        passages: Sequence[Passage] = ()
        try:
            async with aclosing(self.answer(question, assistant)) as stream:
                async for piece in stream:
                    said = piece.text if piece.replaces else said + piece.text
                    passages = piece.passages or passages
        except RagflowError as error:
            return error
        if not passages or not said.strip():
            return []
        checked = CitationFilter(passages, first=0)
        checked.feed(said)
        checked.finish()
        cited = [passages[citation.number - 1] for citation in checked.cited]
        unmarked = CitationFilter((), first=0)
        answer = Passage(
            id=f"answer {assistant.id}",
            text=unmarked.feed(said) + unmarked.finish(),
            document=assistant.name,
            document_id="",
            assistant=assistant.name,
            score=max(passage.score for passage in passages),
        )
        rest = [each for each in passages if each not in cited]
        return [answer, *(each for each in [*cited, *rest] if each.text)]

    def _delete(self, chat: Chat, session_id: str) -> None:
        """Delete the session behind everybody's back: it was of use for this question only."""
        task = asyncio.create_task(self._delete_session(chat, session_id))
        self._deleting.add(task)
        task.add_done_callback(self._deleting.discard)

    async def _delete_session(self, chat: Chat, session_id: str) -> None:
        with suppress(RagflowError):
            await self._transport.submit(lambda: chat.delete_sessions(ids=[session_id]))
