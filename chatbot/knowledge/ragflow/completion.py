"""Reads the answer of RAGFlow's assistant, whatever its stream looks like."""

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping

import aiohttp

from chatbot.domain import AnswerPiece
from chatbot.knowledge.ragflow.chunks import read_references
from chatbot.knowledge.ragflow.connection import Connection, Envelope, parsed
from chatbot.knowledge.ragflow.errors import (
    SUCCESS,
    RagflowError,
    refused,
    unreachable,
    unusable,
)
from chatbot.models.failures import cleaned
from chatbot.models.reasoning import ThinkTags

EVENT_STREAM = "text/event-stream"
LINE_BYTES = 8 * 1024 * 1024
# What RAGFlow writes into an answer when its model fails. Behind text it counts only with one
# of RAGFlow's codes, so that an answer may speak of an **ERROR**.
_CODES = (
    "RATE_LIMIT_EXCEEDED|AUTH_ERROR|INVALID_REQUEST|SERVER_ERROR|TIMEOUT|CONNECTION_ERROR|"
    "MODEL_ERROR|ERROR_MAX_ROUNDS|CONTENT_FILTERED|QUOTA_EXCEEDED|MAX_RETRIES_EXCEEDED|"
    "GENERIC_ERROR"
)
_FAILED = re.compile(rf"\A\s*\*\*ERROR\*\*:\s*|\*\*ERROR\*\*:\s*(?=(?:{_CODES})\b)")


async def pieces(
    connection: Connection, response: aiohttp.ClientResponse, assistant: str
) -> AsyncGenerator[AnswerPiece]:
    """Yield the pieces of the reply to a completion.

    Raises:
        RagflowError: RAGFlow reported an error, also in the middle, or the stream was cut.
    """
    reader = Completion(connection, assistant)
    if response.content_type != EVENT_STREAM:
        for piece in reader.whole(await connection.envelope(response)):
            yield piece
        return
    async for data in _events(response):
        for piece in reader.read(data):
            yield piece
        if reader.finished:
            break
    if not reader.finished:
        reason = "the answer was cut"
        raise unreachable(reason)
    for piece in reader.end():
        yield piece


class Completion:
    """The answer so far.

    Newer servers send what is new, and mark each frame as final or not; the older ones send all
    of the text each time. The prompt that RAGFlow adds to its last frame is not read.
    """

    def __init__(self, connection: Connection, assistant: str) -> None:
        self._connection = connection
        self._assistant = assistant
        self._tags = ThinkTags()
        self._received = ""
        self._said = ""
        self._thinking = False
        self.finished = False

    def whole(self, envelope: Envelope) -> list[AnswerPiece]:
        """Return the pieces of a reply that is not a stream."""
        return [*self._frame(envelope), *self.end()]

    def read(self, data: str) -> list[AnswerPiece]:
        """Return the pieces of one event.

        Raises:
            RagflowError: It is an error, or no event of RAGFlow.
        """
        if data == "[DONE]":
            self.finished = True
            return []
        frame = parsed(data)
        if not isinstance(frame, Mapping):
            reason = "an event that is not its JSON"
            raise unusable(reason)
        return self._frame(frame)

    def end(self) -> list[AnswerPiece]:
        """Return what was held back as the possible beginning of a tag."""
        return self._kept(*self._tags.end())

    def _frame(self, frame: Mapping[str, object]) -> list[AnswerPiece]:
        code, data = frame.get("code", SUCCESS), frame.get("data")
        if code != SUCCESS:
            message = self._connection.safe(frame.get("message") or "")
            raise refused(code if isinstance(code, int) else 500, message)
        if data is True:
            self.finished = True
        if not isinstance(data, Mapping):
            return []
        answer = data.get("answer")
        found = self._answer(answer, data) if isinstance(answer, str) else []
        if data.get("start_to_think") is True or data.get("end_to_think") is True:
            self._thinking = data.get("start_to_think") is True
        if passages := read_references(data.get("reference"), self._assistant):
            found.append(AnswerPiece(passages=passages))
        return found

    def _answer(self, answer: str, data: Mapping[str, object]) -> list[AnswerPiece]:
        if not answer:
            return []
        if data.get("final") is True:
            return self._replaced(answer)
        new = answer
        if "final" not in data:
            if not answer.startswith(self._received):
                return self._replaced(answer)
            new = answer[len(self._received) :]
            self._received = answer
        self._refuse_errors(new)
        if self._thinking:
            return [AnswerPiece(thought=new)] if new else []
        return self._kept(*self._tags.feed(new))

    def _replaced(self, answer: str) -> list[AnswerPiece]:
        """Take a text that is the whole answer, as the last frame may have it."""
        self._refuse_errors(answer)
        self._received = answer
        self._tags = ThinkTags()
        text, _ = self._tags.feed(answer)
        text += self._tags.end()[0]
        if text == self._said:
            return []
        self._said = text
        return [AnswerPiece(text=text, replaces=True)]

    def _kept(self, text: str, thought: str) -> list[AnswerPiece]:
        self._said += text
        kept = [AnswerPiece(thought=thought)] if thought else []
        return [*kept, AnswerPiece(text=text)] if text else kept

    def _refuse_errors(self, text: str) -> None:
        """Raise what RAGFlow wrote into the answer when its model failed."""
        if (failed := _FAILED.search(text)) is not None:
            detail = cleaned(self._connection.safe(text[failed.end() :]))
            message = (
                f"The model of RAGFlow's assistant {self._assistant!r} failed: {detail}."
                " Check the model of the assistant in RAGFlow."
            )
            raise RagflowError("unavailable", message, detail=detail)


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[str]:
    """Yield the data of each event; RAGFlow writes every event on one line."""
    held = b""
    async for part in response.content.iter_any():
        *lines, held = (held + part).split(b"\n")
        for line in lines:
            if line.startswith(b"data:"):
                yield line.removeprefix(b"data:").strip().decode(errors="replace")
        if len(held) > LINE_BYTES:
            reason = f"an event of more than {LINE_BYTES} bytes"
            raise unusable(reason)
    if held.startswith(b"data:"):
        yield held.removeprefix(b"data:").strip().decode(errors="replace")
