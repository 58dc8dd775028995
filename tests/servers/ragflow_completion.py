"""RAGFlow's assistants answering: every shape their streams come in."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any

from tests.servers.loopback import Reply, Request
from tests.servers.ragflow_knowledge import scored
from tests.servers.ragflow_rows import chunk_row

if TYPE_CHECKING:
    from tests.servers.ragflow import RagflowServer, Route

PROMPT = "You are the company's assistant. Secret system prompt."
NOTHING = "Sorry! No relevant content was found in the knowledge base!"
ERROR = "**ERROR**: AUTH_ERROR - Error code: 401 - {'error': 'invalid key sk-model'}"
SHAPES = (
    "deltas",
    "cumulative",
    "thinking",
    "think tags",
    "empty twice",
    "no final frame",
    "plain frame",
    "marked at last",
    "final text",
    "table",
    "reference as dict",
    "raw reference",
    "error text",
    "error after text",
    "error in text",
    "code 500",
    "cut",
    "reset",
    "html",
    "html 502",
    "json error",
    "json answer",
    "silent",
    "nothing",
    "stalls",
    "stalls later",
    "bytewise",
    "noise",
)
Frame = Mapping[str, Any]


class Completions:
    """Sessions and answers. `shape` says how the next answers are streamed.

    `shape_of` says it for single assistants. Without `text` an answer is the best chunk and a
    marker for it. `abandoned` counts the clients that left in the middle of one.
    """

    def __init__(self, server: "RagflowServer") -> None:
        self._server = server
        self.shape = "deltas"
        self.shape_of: dict[str, str] = {}
        self.text = ""
        self.sessions: dict[str, str] = {}
        self.deleted: list[str] = []
        self.abandoned = 0

    def routes(self) -> "list[tuple[str, str, Route]]":
        return [
            ("POST", r"/chats/(?P<chat>\w+)/sessions", self._create),
            ("DELETE", r"/chats/(?P<chat>\w+)/sessions", self._delete),
            ("POST", r"/chats/(?P<chat>\w+)/completions", self._complete),
        ]

    async def _create(self, request: Request, reply: Reply, ids: Mapping[str, str]) -> None:
        if all(chat.id != ids["chat"] for chat in self._server.chats):
            await reply.json({"code": 109, "data": False, "message": "no authorization"})
            return
        session = uuid.uuid4().hex
        self.sessions[session] = ids["chat"]
        row = {"id": session, "chat_id": ids["chat"], "name": request.json()["name"]}
        messages = [{"role": "assistant", "content": "Hi!"}]
        await reply.json(
            {"code": 0, "data": row | {"messages": messages}, "message": "success"}
        )

    async def _delete(self, request: Request, reply: Reply, _: Mapping[str, str]) -> None:
        self.deleted += request.json().get("ids") or []
        await reply.json({"code": 0, "data": True, "message": "success"})

    async def _complete(self, request: Request, reply: Reply, ids: Mapping[str, str]) -> None:
        body = request.json()
        session = body.get("session_id")
        shape = self.shape_of.get(ids["chat"], self.shape)
        if shape == "json error" or self.sessions.get(session) != ids["chat"]:
            await reply.json({"code": 102, "message": "Session not found!"})
        elif shape in {"html", "html 502"}:
            status = 502 if shape == "html 502" else 200
            await reply.send(b"<html>proxy</html>", status=status, content_type="text/html")
        elif shape == "stalls":
            await reply.closed_by_client()
        elif shape == "json answer":
            text, reference = self._answer(body["question"], ids["chat"], shape)
            frame = _frame(text, {"reference": reference, "prompt": PROMPT})
            await reply.json({**frame, "message": "success"})
        else:
            reply.extra.append(("Content-Type", "text/event-stream; charset=utf-8"))
            await reply.start(content_type="text/event-stream; charset=utf-8")
            await self._stream(body["question"], ids["chat"], shape, reply)

    async def _stream(self, question: str, chat_id: str, shape: str, reply: Reply) -> None:
        text, reference = self._answer(question, chat_id, shape)
        sent = 0
        async for frame in self._frames(text, reference, shape):
            data = f"data:{json.dumps(frame, ensure_ascii=False)}\n\n".encode()
            parts = (
                [data[at : at + 1] for at in range(len(data))]
                if shape == "bytewise"
                else [data]
            )
            for part in parts:
                await reply.chunk(part)
            sent += 1
            if shape == "cut" and sent == 2:
                await reply.end()
                return
            if shape == "reset" and sent == 2:
                await asyncio.sleep(0.05)
                reply.reset()
                return
            if shape == "stalls later" and sent == 2:
                await reply.closed_by_client()
                self.abandoned += 1
                return
        await reply.end()

    def _answer(self, question: str, chat_id: str, shape: str) -> tuple[str, dict[str, Any]]:
        chat = next(chat for chat in self._server.chats if chat.id == chat_id)
        datasets = [self._server.datasets[each] for each in chat.dataset_ids]
        hits = [hit for hit in scored(question, datasets) if hit[0] > 0.1][:6]
        raw = shape == "raw reference"
        rows = [chunk_row(hit, raw=raw) for hit in hits]
        for row in rows if not raw else []:
            row["document_name"] = row.pop("document_keyword")
        chunks: Any = rows
        if shape == "table":
            names = ("document_id", "document_name")
            chunks = [{name: row[name] for name in names} for row in rows]
        if shape == "reference as dict":
            chunks = {row["id"]: row for row in rows}
        reference = {"total": len(rows), "chunks": chunks, "doc_aggs": []}
        best = rows[0].get("content") or rows[0]["content_with_weight"] if rows else NOTHING
        return self.text or (f"{best} [ID:0]" if rows else NOTHING), reference

    async def _frames(  # noqa: C901, PLR0912 - one branch per shape
        self, text: str, reference: dict[str, Any], shape: str
    ) -> AsyncIterator[Frame]:
        middle = len(text) // 2
        parts = [text[:middle], text[middle:]]
        final = {"reference": reference, "prompt": PROMPT, "created_at": 1.0, "final": True}
        if shape == "nothing":
            pass
        elif shape == "silent":
            yield _frame("", final)
        elif shape == "empty twice":
            yield _frame(NOTHING, {"reference": {"chunks": []}, "final": False})
            yield _frame(
                NOTHING, {"reference": {"chunks": []}, "final": True, "prompt": PROMPT}
            )
        elif shape == "cumulative":
            yield _frame(parts[0], {"reference": {}})
            yield _frame(text, {"reference": {}})
            yield _frame(text, {"reference": reference, "prompt": PROMPT})
        elif shape == "think tags":
            yield _frame("<think>Let me", {"reference": {}})
            yield _frame("<think>Let me see.</think>", {"reference": {}})
            yield _frame(f"<think>Let me see.</think>{text}", {"reference": reference})
        elif shape == "marked at last":  # an old server marks what its model did not
            bare = text.replace(" [ID:0]", "")
            yield _frame(bare[:middle], {"reference": {}})
            yield _frame(bare, {"reference": {}})
            marked = f"{bare[:-1]} ##0$${bare[-1]}"
            yield _frame(marked, {"reference": reference, "prompt": PROMPT})
        elif shape == "final text":
            for part in (text[:middle], text[middle:].replace(" [ID:0]", "")):
                yield _frame(part, {"reference": {}, "final": False})
            yield _frame(f"<think>Let me see.</think>{text}", final)
        elif shape in {"plain frame", "table"}:
            yield _frame(text, {"reference": reference, "prompt": PROMPT})
        elif shape == "error text":
            yield _frame(ERROR, {"reference": {"chunks": []}, "final": False})
            yield _frame("", final)
        elif shape == "code 500":
            data = {"answer": "**ERROR**: 'Miss parameter: x'", "reference": []}
            yield {"code": 500, "message": "'Miss parameter: x'", "data": data}
        else:
            if shape == "thinking":
                for extra in ({"start_to_think": True}, {}, {"end_to_think": True}):
                    thought = "" if extra else "Let me see."
                    yield _frame(
                        thought, {"reference": {"chunks": []}, "final": False, **extra}
                    )
            if shape == "error in text":
                parts[1] = f"{parts[1]} {ERROR}"
            for part in parts:
                yield _frame(part, {"reference": {"chunks": []}, "final": False})
                if shape == "noise":
                    yield {"code": 0, "message": "", "data": {"answer": None, "running": True}}
            if shape == "error after text":
                yield _frame(ERROR, {"reference": {"chunks": []}, "final": False})
            if shape != "no final frame":
                yield _frame("", final)
        yield {"code": 0, "message": "", "data": True}


def _frame(answer: str, more: Mapping[str, Any]) -> Frame:
    data = {"answer": answer, "audio_binary": None, "id": "m1", "session_id": "s1", **more}
    return {"code": 0, "message": "", "data": data}
