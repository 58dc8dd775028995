"""The clients that are compared: each gives the pieces of text of one streamed answer."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol
from uuid import uuid4

import aiohttp
import orjson

from benchmarks.steps import MODEL
from chatbot.models.endpoints import Endpoint, ModelChoice
from chatbot.settings import Settings


class Stream(Protocol):
    """Asks a question and yields the answer's pieces."""

    def __call__(self, question: str) -> AsyncIterator[object]:
        """Yield each piece that has text."""
        ...


@asynccontextmanager
async def bare(url: str) -> AsyncIterator[Stream]:
    """Open aiohttp with a line reader and a JSON parser, the least there can be."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def stream(question: str) -> AsyncIterator[object]:
            messages = [{"role": "user", "content": question}]
            body = {"model": MODEL, "stream": True, "messages": messages}
            async with session.post(f"{url}/chat/completions", json=body) as response:
                async for line in response.content:
                    if line.startswith(b"data: {"):
                        text = orjson.loads(line[6:])["choices"][0]["delta"].get("content")
                        if text:
                            yield text

        yield stream


@asynccontextmanager
async def sdk(url: str) -> AsyncIterator[Stream]:
    """Open the OpenAI SDK."""
    import openai  # noqa: PLC0415 - only one of several clients

    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:

        async def stream(question: str) -> AsyncIterator[object]:
            async for chunk in await client.chat.completions.create(
                model=MODEL, stream=True, messages=[{"role": "user", "content": question}]
            ):
                if text := chunk.choices[0].delta.content:
                    yield text

        yield stream


@asynccontextmanager
async def chat_openai(url: str) -> AsyncIterator[Stream]:
    """Open LangChain's model as it is."""
    from langchain_openai import ChatOpenAI  # noqa: PLC0415 - only one of several clients

    model = ChatOpenAI(model=MODEL, base_url=url, api_key="none")

    async def stream(question: str) -> AsyncIterator[object]:
        async for chunk in model.astream(question):
            if chunk.content:
                yield chunk

    yield stream


@asynccontextmanager
async def pool(url: str) -> AsyncIterator[Stream]:
    """Open our pool with one endpoint."""
    from chatbot.models.selection import open_model  # noqa: PLC0415 - only one of several

    endpoint = Endpoint(provider="openai", model=MODEL, base_url=url)
    async with open_model(ModelChoice(endpoints=[endpoint]), Settings()) as model:

        async def stream(question: str) -> AsyncIterator[object]:
            async for chunk in model.astream(question):
                if chunk.content:
                    yield chunk

        yield stream


@asynccontextmanager
async def whole(url: str) -> AsyncIterator[Stream]:
    """Open the chatbot: from the socket to the events of a turn, every step included."""
    from graphs.conversation import open_chatbot  # noqa: PLC0415 - only one of several clients

    with TemporaryDirectory() as folder:
        settings = Settings(
            chatbot_data_dir=Path(folder),
            knowledge_dir=Path(folder),
            llm_model=MODEL,
            openai_base_url=url,
        )
        async with open_chatbot(settings) as bot:

            async def stream(question: str) -> AsyncGenerator[object]:
                events = bot.stream(question, session_id=uuid4().hex, route="general_chat")
                async with aclosing(events):
                    async for event in events:
                        if event["type"] == "content":
                            yield event
                        elif event["type"] == "error":
                            raise RuntimeError(event["data"]["message"])

            yield stream


CLIENTS: dict[str, Callable[[str], AbstractAsyncContextManager[Stream]]] = {
    "aiohttp and orjson alone": bare,
    "OpenAI SDK": sdk,
    "ChatOpenAI.astream": chat_openai,
    "our pool, astream": pool,
    "our Chatbot.stream": whole,
}
