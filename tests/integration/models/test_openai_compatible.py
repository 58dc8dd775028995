"""What LangChain and the graph expect of the model, beyond its text."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, cast

import pytest
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel

from chatbot.models.openai_compatible import OpenAICompatibleModel
from tests.integration.models.streams import opened, until, watch
from tests.servers.model import ModelServer, answer, call, refuse


@tool
def knowledge_base(question: str) -> str:
    """Search the documents."""
    return question


class City(BaseModel):
    """A city."""

    name: str


class Runs(AsyncCallbackHandler):
    """Counts the model runs and what they bring."""

    def __init__(self) -> None:
        self.started = 0
        self.ended = 0
        self.failed = 0
        self.tokens = ""

    async def on_chat_model_start(self, *_: Any, **__: Any) -> None:
        self.started += 1

    async def on_llm_new_token(self, token: Any, **_: Any) -> None:
        self.tokens += token

    async def on_llm_end(self, *_: Any, **__: Any) -> None:
        self.ended += 1

    async def on_llm_error(self, *_: Any, **__: Any) -> None:
        self.failed += 1


@pytest.fixture
def server() -> Any:
    with ModelServer(
        lambda request: (
            call(request.tools[0], {"question": "x", "name": "Paris"})
            if request.tools
            else answer("Paris is the capital.", reasoning=["Hm."])
        )
    ) as server:
        yield server


@pytest.fixture
async def model(server: ModelServer) -> AsyncIterator[OpenAICompatibleModel]:
    async with opened(server.base_url) as model:
        yield model


async def test_the_request_holds_what_was_asked_for(
    server: ModelServer, model: OpenAICompatibleModel
) -> None:
    messages = [
        SystemMessage("Be {brief}."),
        HumanMessage("Where is 巴黎? \ud800"),
        AIMessage("", tool_calls=[{"name": "knowledge_base", "args": {"q": 1}, "id": "c1"}]),
        ToolMessage("France", tool_call_id="c1"),
        AIMessage("In France.", additional_kwargs={"reasoning_content": "secret thoughts"}),
        HumanMessage("And Rome?"),
    ]
    await model.ainvoke(
        messages, stop=["END"], temperature=0.2, max_tokens=50, user="u1", top_p=0.5
    )
    body = server.seen[0].body
    assert body["messages"][0] == {"role": "system", "content": "Be {brief}."}
    assert body["messages"][1]["content"] == "Where is 巴黎? ?"
    assert body["messages"][2]["tool_calls"][0]["function"]["arguments"] == '{"q": 1}'
    assert "secret thoughts" not in str(body)
    assert {
        name: body[name] for name in ("stop", "temperature", "max_tokens", "user", "top_p")
    } == {
        "stop": ["END"],
        "temperature": 0.2,
        "max_tokens": 50,
        "user": "u1",
        "top_p": 0.5,
    }
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert server.seen[0].key == "sk-secret-of-the-test"


async def test_without_a_key_none_is_sent(server: ModelServer) -> None:
    async with opened(server.base_url, api_key=None) as model:
        await model.ainvoke("hi")
    assert "authorization" not in server.requests[0].headers


async def test_a_login_in_the_address_is_sent_and_not_shown(server: ModelServer) -> None:
    address = server.base_url.replace("http://", "http://ann:secret@")
    async with opened(address, api_key=None) as model:
        await model.ainvoke("hi")
        assert "secret" not in model.name_for_people
    assert server.requests[0].headers["authorization"] == "Basic YW5uOnNlY3JldA=="


async def test_whole_messages_have_the_same_parts(model: OpenAICompatibleModel) -> None:
    message = await model.ainvoke("Where is Paris?")
    assert message.content == "Paris is the capital."
    assert message.additional_kwargs["reasoning_content"] == "Hm."
    assert message.response_metadata["finish_reason"] == "stop"
    assert message.response_metadata["model_name"] == "scripted"
    assert message.usage_metadata == {
        "input_tokens": 12,
        "output_tokens": 7,
        "total_tokens": 19,
    }


async def test_bound_tools_reach_the_endpoint(
    server: ModelServer, model: OpenAICompatibleModel
) -> None:
    bound = model.bind_tools([knowledge_base], tool_choice="any")
    message = await bound.ainvoke("Where is Paris?")
    assert message.tool_calls[0]["name"] == "knowledge_base"
    assert server.seen[0].body["tool_choice"] == "required"
    assert server.seen[0].tools == ["knowledge_base"]


async def test_structured_output_by_a_tool(model: OpenAICompatibleModel) -> None:
    structured = model.with_structured_output(City, method="function_calling")
    assert await structured.ainvoke("Where is Paris?") == City(name="Paris")


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        pytest.param("stream_options", "Unrecognized argument: stream_options", id="usage"),
        pytest.param("stream", "This model does not support streaming.", id="streaming"),
    ],
)
async def test_an_endpoint_that_can_less_is_asked_for_less(refused: str, message: str) -> None:
    with ModelServer(
        lambda request: refuse(400, message) if request.body.get(refused) else answer("Paris.")
    ) as server:
        async with opened(server.base_url) as model:
            assert [(await model.ainvoke("Where?")).content for _ in range(2)] == ["Paris."] * 2
    assert len(server.seen) == 3


async def test_leaving_a_stream_early_closes_the_request() -> None:
    with ModelServer([answer("x " * 1000, delay=0.01)]) as server:
        async with opened(server.base_url) as model:
            stream = model.astream("Go on.")
            async with aclosing(cast("AsyncGenerator[Any]", stream)) as chunks:
                async for _ in chunks:
                    break
            await until(lambda: server.abandoned == 1)


async def test_each_call_is_one_run_in_the_trace(model: OpenAICompatibleModel) -> None:
    runs = Runs()
    quiet = model.with_config(tags=["nostream"], callbacks=[runs])
    await watch(quiet.astream("Where is Paris?"))
    assert (runs.started, runs.ended, runs.failed) == (1, 1, 0)
    assert runs.tokens == "Paris is the capital."
    await quiet.ainvoke("Where is Paris?")
    assert (runs.started, runs.ended) == (2, 2)


async def test_a_call_that_is_watched_brings_the_same(model: OpenAICompatibleModel) -> None:
    said = HumanMessage("Where is Paris?")
    watched = {"callbacks": [Runs()]}
    for bound in (model, model.bind(stop=["."]), model.bind_tools([knowledge_base])):
        alone: list[Any] = [chunk async for chunk in bound.astream([said])]
        seen: list[Any] = [chunk async for chunk in bound.astream([said], cast("Any", watched))]
        assert _together(alone) == _together(seen)
        assert alone[-1].chunk_position == "last"
        assert {str(chunk.id)[:8] for chunk in [*alone, *seen]} == {"lc_run--"}
        assert len({chunk.id for chunk in alone}) == 1


def _together(chunks: list[Any]) -> dict[str, Any]:
    first, *others = chunks
    return {**(first + others).model_dump(), "id": None}


async def test_the_key_is_not_in_the_trace(model: OpenAICompatibleModel) -> None:
    seen: list[Any] = []

    class Notes(AsyncCallbackHandler):
        async def on_chat_model_start(self, *arguments: Any, **named: Any) -> None:
            seen.extend([arguments, named])

    await model.ainvoke("hi", config={"callbacks": [Notes()]})
    assert seen
    assert "sk-secret" not in repr(seen) + repr(model)


def test_synchronous_calls(server: ModelServer) -> None:
    model = OpenAICompatibleModel(model="scripted", base_url=server.base_url)
    assert model.invoke("Where is Paris?").content == "Paris is the capital."
    assert (
        "".join(str(chunk.content) for chunk in model.stream("hi")) == "Paris is the capital."
    )


async def test_synchronous_calls_inside_a_running_loop(model: OpenAICompatibleModel) -> None:
    assert model.invoke("Where is Paris?").content == "Paris is the capital."


async def test_a_synchronous_call_leaves_other_loops_alone(server: ModelServer) -> None:
    async with opened(server.base_url) as model:
        await model.ainvoke("hi")
        await asyncio.to_thread(model.invoke, "hi")
        before = server.connections
        await model.ainvoke("hi")
        assert server.connections == before


def test_one_model_serves_many_event_loops(server: ModelServer) -> None:
    model = OpenAICompatibleModel(model="scripted", base_url=server.base_url)

    async def ask() -> object:
        return (await model.ainvoke("Where is Paris?")).content

    async def ask_and_close() -> object:
        said = await ask()
        await model.aclose()
        return said

    assert [asyncio.run(ask()), asyncio.run(ask()), asyncio.run(ask_and_close())] == [
        "Paris is the capital."
    ] * 3
