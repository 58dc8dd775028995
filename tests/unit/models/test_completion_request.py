"""The request is the one that LangChain's own class makes."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_openai import ChatOpenAI

from chatbot.models.completion_request import completion_request

CALL = {"name": "look_up", "args": {"词": 1}, "id": "call_1", "type": "tool_call"}
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
SAID: Sequence[BaseMessage] = [SystemMessage("Be brief."), HumanMessage("Where is 巴黎?")]


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param(SAID, id="text"),
        pytest.param(
            [*SAID, AIMessage("", tool_calls=[CALL]), ToolMessage("", tool_call_id="call_1")],
            id="a call and an empty result",
        ),
        pytest.param(
            [*SAID, AIMessage("Wait.", tool_calls=[CALL, CALL])], id="words and calls"
        ),
        pytest.param(
            [AIMessage("Yes.", additional_kwargs={"reasoning_content": "hm"})], id="reasoning"
        ),
        pytest.param([HumanMessage([{"type": "text", "text": "What?"}, PICTURE])], id="image"),
        pytest.param([HumanMessage("Hi", name="ann")], id="name"),
        pytest.param([HumanMessage("")], id="nothing"),
    ],
)
@pytest.mark.parametrize(
    ("model", "options"),
    [
        pytest.param("gpt-4.1", {}, id="plain"),
        pytest.param("o3", {"max_tokens": 5, "stop": ["x"]}, id="o-series"),
        pytest.param(
            "qwen-plus",
            {"temperature": 0.0, "top_p": 0.1, "seed": 1, "user": "u", "tool_choice": "none"},
            id="options",
        ),
    ],
)
def test_the_request_is_that_of_langchain(
    messages: Sequence[BaseMessage], model: str, options: Mapping[str, Any]
) -> None:
    langchain = ChatOpenAI(model=model, api_key="none", temperature=None)
    expected = langchain._get_request_payload(list(messages), **options)  # noqa: SLF001 - compared
    if model == "o3":
        expected.pop("temperature", None)
    del expected["stream"]
    ours = completion_request(model, messages, options, of_openai=True)
    assert ours == expected


@pytest.mark.parametrize(
    ("of_openai", "given", "sent"),
    [
        pytest.param(True, "max_tokens", "max_completion_tokens", id="OpenAI"),
        pytest.param(False, "max_tokens", "max_tokens", id="others"),
        pytest.param(False, "max_completion_tokens", "max_tokens", id="others, the newer name"),
    ],
)
def test_the_limit_has_the_name_that_is_known(of_openai: bool, given: str, sent: str) -> None:
    body = completion_request("m", SAID, {given: 5}, of_openai=of_openai)
    assert {name: body[name] for name in body if name.startswith("max")} == {sent: 5}


def test_more_goes_into_the_body_and_what_is_for_the_sdk_does_not() -> None:
    options = {"extra_body": {"enable_thinking": False}, "timeout": 3, "stop": None}
    body = completion_request("m", SAID, options, of_openai=False)
    assert body.keys() == {"model", "messages", "enable_thinking"}
