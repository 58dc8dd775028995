"""Lets an assistant that is asked alone answer by itself: its words go straight through."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import asdict
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langgraph.runtime import Runtime
from pydantic import SkipValidation

from chatbot.citations import CitationFilter
from chatbot.domain import AnswerPiece, Assistant, Passage
from chatbot.errors import KnowledgeBaseError
from chatbot.messages import text_of
from chatbot.ports import Ports, Respondent
from graphs.keeping import running
from graphs.searching import not_asked, outcome_of
from graphs.state import ChatState, ChatUpdate, Context
from graphs.tracing import describe_trace
from graphs.turn import LiveTurn

FIRST_MARKER = 0  # the number that an assistant gives to the first passage


def alone(asked: Sequence[Assistant], available: Sequence[Assistant]) -> Assistant | None:
    """Return the one assistant that a question is for, if it is for a single one."""
    wanted = asked or available
    return wanted[0] if len(wanted) == 1 else None


async def respond(state: ChatState, runtime: Runtime[Context], *, ports: Ports) -> ChatUpdate:
    """Let the assistant answer. If it fails or knows nothing, the others are asked.

    Raises:
        KnowledgeBaseError: It failed after its first word, which cannot be taken back.
    """
    del runtime
    turn, assistant = running(state), state.respondent
    assert assistant is not None  # noqa: S101 - the edge to here looks
    assert ports.respondent is not None  # noqa: S101 - as above
    turn.stage("searching", state.query)
    turn.note(assistants=[assistant.name])
    others: ChatUpdate = {"assistants": [a for a in state.assistants if a.id != assistant.id]}
    response = _Response(turn)
    try:
        await _stream(response, ports.respondent, assistant)
    except KnowledgeBaseError as error:
        if turn.answer:
            raise
        turn.degrade("knowledge", f"{assistant.name}: {error.message}", error)
        if not others["assistants"] and turn.elsewhere:
            turn.degrade("assistants", not_asked([assistant.name]))
            others["assistants"] = turn.elsewhere
        return {**others, "outcome": outcome_of(error)}
    if not turn.answer.strip():
        return others
    turn.finished = True
    describe_trace(assistants=[assistant.name], passages_found=len(response.passages))
    return {
        "messages": [turn.answer_message(response.message_id)],
        "passages": response.passages,
        "outcome": "found" if response.passages else "empty",
    }


async def _stream(response: "_Response", respondent: Respondent, assistant: Assistant) -> None:
    """Emit the answer as it comes."""
    model = RespondingModel(respondent=respondent, assistant=assistant)
    question = HumanMessage(response.turn.record["query"])
    stream = model.with_config(run_name="answer").astream([question])
    try:
        async with aclosing(cast("Any", stream)) as chunks:
            async for chunk in cast("AsyncIterator[AIMessageChunk]", chunks):
                response.take(chunk)
    finally:
        # Also of an answer that was stopped or broke, all that was said is kept.
        response.finish(assistant)


class _Response:
    """What an assistant says, while the passages that its markers mean are not known yet."""

    def __init__(self, turn: LiveTurn) -> None:
        self.turn = turn
        self.passages: Sequence[Passage] = ()
        self.message_id: str | None = None
        self._text = ""
        self._shown = CitationFilter(None, first=FIRST_MARKER)
        self._begun = False

    def take(self, chunk: AIMessageChunk) -> None:
        """Emit a piece of the answer."""
        self.message_id = chunk.id or self.message_id
        piece = _piece_of(chunk)
        if not self._begun and (piece.text or piece.thought):
            self._begun = True
            self.turn.send_metadata()
            self.turn.stage("answering")
        if piece.thought:
            self.turn.send("reasoning", piece.thought)
        self.passages = piece.passages or self.passages
        if piece.replaces and self._text:
            self._text = piece.text  # what was said cannot be taken back before the end
        else:
            self._text += piece.text
            self.turn.say(self._shown.feed(piece.text))

    def finish(self, assistant: Assistant) -> None:
        """Emit what was held back, take out numbers that mean nothing, and note the rest."""
        self.turn.say(self._shown.finish())
        if not self.turn.answer:
            return
        checked = CitationFilter(self.passages, first=FIRST_MARKER)
        self.turn.correct(checked.feed(self._text) + checked.finish())
        self.turn.note(
            citations=[citation.as_json() for citation in checked.cited],
            outcome="found" if self.passages else "empty",
            passages=[asdict(passage) for passage in self.passages],
            model=assistant.name,
            finish_reason="stop",
            usage={"input_tokens": None, "output_tokens": None, "estimated": False},
        )


class RespondingModel(BaseChatModel):
    """An assistant as a chat model, so that it streams and is traced like any other."""

    respondent: SkipValidation[Respondent]
    assistant: Assistant

    @property
    def _llm_type(self) -> str:
        return "assistant"

    def _generate(self, *_: Any, **__: Any) -> ChatResult:  # noqa: ANN401 - never called
        raise NotImplementedError

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401 - the signature of the base class
    ) -> AsyncIterator[ChatGenerationChunk]:
        """Yield the pieces of the answer to the last message."""
        del stop, run_manager, kwargs
        yield ChatGenerationChunk(
            message=AIMessageChunk(content="")
        )  # none at all would be an error
        question = text_of(messages[-1].content)
        async with aclosing(self.respondent.answer(question, self.assistant)) as pieces:
            async for piece in pieces:
                yield ChatGenerationChunk(message=_chunk_of(piece))


def _chunk_of(piece: AnswerPiece) -> AIMessageChunk:
    """Return the piece as plain JSON, whose parts LangChain can put together."""
    facts: dict[str, Any] = {}
    if piece.thought:
        facts["reasoning_content"] = piece.thought
    if piece.passages:
        facts["passages"] = [asdict(passage) for passage in piece.passages]
    if piece.replaces:
        facts["whole_answer"] = piece.text
    text = "" if piece.replaces else piece.text
    return AIMessageChunk(content=text, additional_kwargs=facts)


def _piece_of(chunk: AIMessageChunk) -> AnswerPiece:
    facts = chunk.additional_kwargs
    return AnswerPiece(
        text=facts.get("whole_answer", text_of(chunk.content)),
        thought=facts.get("reasoning_content", ""),
        passages=[Passage(**passage) for passage in facts.get("passages", ())],
        replaces="whole_answer" in facts,
    )
