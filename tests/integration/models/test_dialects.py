"""The chunks of DashScope, OpenAI, vLLM, Ollama and others, each in its own shape."""

from typing import Any

import pytest

from tests.integration.models.streams import Seen, opened, watch
from tests.servers.model import ModelServer, delta, frames, whole

CALL = ("knowledge_base", {"question": "巴黎在哪"})


def call_delta(fragment: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return delta(tool_calls=[fragment], **fields)


OPENAI_ANSWER = [
    {**delta("", role="assistant", refusal=None), "service_tier": "default", "usage": None},
    {**delta("Paris "), "usage": None, "obfuscation": "x9"},
    {**delta("is."), "usage": None},
    {**delta(finish="stop"), "usage": None},
    {
        "model": "gpt-4.1-mini-2025-04-14",
        "choices": [],
        "usage": {
            "prompt_tokens": 20,
            "completion_tokens": 3,
            "total_tokens": 23,
            "prompt_tokens_details": {"cached_tokens": 16, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 2},
        },
    },
]
OPENAI_CALLS = [
    delta(role="assistant", content=None, tool_calls=[
        {"index": 0, "id": "call_a", "type": "function",
         "function": {"name": "knowledge_base", "arguments": ""}}]),
    call_delta({"index": 0, "function": {"arguments": '{"question": "巴'}}),
    call_delta({"index": 1, "id": "call_b", "type": "function",
                "function": {"name": "general_chat", "arguments": ""}}),
    call_delta({"index": 1, "function": {"arguments": "{}"}}),
    call_delta({"index": 0, "function": {"arguments": '黎在哪"}'}}),
    delta(finish="tool_calls"),
]  # fmt: skip
DASHSCOPE_THINKING = [
    delta(role="assistant", content=None, reasoning_content=""),
    delta(content=None, reasoning_content="先想"),
    delta(content=None, reasoning_content="一想"),
    delta("巴黎", reasoning_content=None),
    delta("。", finish=""),
    delta("", finish="stop"),
    {"choices": [], "object": "chat.completion.chunk", "model": "qwen-plus", "usage": {
        "prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14}},
]  # fmt: skip
DASHSCOPE_CALLS = [
    call_delta({"index": 0, "id": "call_1", "type": "function",
                "function": {"name": "knowledge_base", "arguments": ""}},
               role="assistant", content=None),
    call_delta({"index": 0, "id": "", "type": "function",
                "function": {"name": "", "arguments": '{"question": "巴黎'}}, content=None),
    call_delta({"index": 0, "id": "", "type": "function",
                "function": {"name": None, "arguments": '在哪"}'}}, content=None),
    delta("", finish="tool_calls"),
]  # fmt: skip
VLLM_REASONING = [
    {**delta("", role="assistant"), "prompt_token_ids": None,
     "usage": {"prompt_tokens": 4, "completion_tokens": 0}},
    {**delta(reasoning="Think."), "usage": {"prompt_tokens": 4, "completion_tokens": 1}},
    {**delta("Paris."), "usage": {"prompt_tokens": 4, "completion_tokens": 2}},
    {**delta("", finish="stop"), "stop_reason": None,
     "usage": {"prompt_tokens": 4, "completion_tokens": 3}},
    {"model": "Qwen/Qwen3-8B", "choices": [],
     "usage": {"prompt_tokens": 4, "completion_tokens": 3, "total_tokens": 7}},
]  # fmt: skip
OLLAMA_CALLS = [
    call_delta({"id": "call_x", "index": 0, "type": "function",
                "function": {"name": "knowledge_base", "arguments": '{"question":"巴黎在哪"}'}},
               role="assistant", content=""),
    call_delta({"id": "call_y", "index": 0, "type": "function",
                "function": {"name": "general_chat", "arguments": "{}"}},
               role="assistant", content=""),
    delta("", role="assistant", finish="tool_calls"),
]  # fmt: skip
WITHOUT_INDEX = [
    call_delta({"function": {"name": "knowledge_base", "arguments": ""}}),
    call_delta({"function": {"arguments": '{"question": '}}),
    call_delta({"function": {"arguments": '"巴黎在哪"}'}}),
    call_delta({"function": {"name": "general_chat", "arguments": "{}"}}),
    delta(finish="stop"),
]
WITHOUT_IDS = [
    call_delta(
        {"index": 0, "function": {"name": "knowledge_base", "arguments": '{"question": '}}
    ),
    call_delta({"index": 0, "function": {"arguments": '"巴黎在哪"}'}}),
    call_delta({"index": 0, "function": {"name": "general_chat", "arguments": "{}"}}),
    call_delta({"index": 0, "function": {"name": "general_chat", "arguments": "{}"}}),
    delta(finish="stop"),
]
ANOTHER_ID_EACH = [
    call_delta({"id": "a", "function": {"name": "knowledge_base", "arguments": ""}}),
    call_delta({"id": "b", "function": {"arguments": '{"question": '}}),
    call_delta({"id": "c", "function": {"name": "", "arguments": '"巴黎在哪"}'}}),
    delta(finish="tool_calls"),
]
REPEATED_NAME = [
    call_delta({"index": 0, "id": "c", "function": {"name": "knowledge_base",
                                                    "arguments": "{"}}),
    call_delta({"index": 0, "id": "c", "function": {"name": "knowledge_base",
                                                    "arguments": '"question": "巴黎在哪"}'}}),
    delta(finish="tool_calls"),
]  # fmt: skip
MISTRAL_PARTS = [
    delta([{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}]),
    delta([{"type": "text", "text": "Paris."}]),
    delta("", finish="stop"),
]
REPEATED_ANSWER = [
    delta("Par"),
    delta("is."),
    {"choices": [{"delta": {}, "message": {"content": "Paris."}, "finish_reason": "stop"}]},
]
OLD_CALL = [
    delta(function_call={"name": "knowledge_base", "arguments": ""}),
    delta(function_call={"arguments": '{"question": "巴黎在哪"}'}),
    delta(finish="function_call"),
]
WHOLE = {
    "model": "local",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {
        "role": "assistant", "content": "<think>Hm.</think>\n\nParis.", "tool_calls": []}}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
}  # fmt: skip
WHOLE_CALL = {
    "choices": [{"finish_reason": "tool_calls", "message": {"content": None, "tool_calls": [
        {"id": "1", "type": "function",
         "function": {"name": "knowledge_base", "arguments": {"question": "巴黎在哪"}}}]}}],
}  # fmt: skip


@pytest.mark.parametrize("cut", [0, 1, 7], ids=["by frame", "byte by byte", "by 7 bytes"])
@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param(OPENAI_ANSWER, Seen(answer="Paris is.", finish="stop"), id="OpenAI"),
        pytest.param(
            OPENAI_CALLS,
            Seen(calls=[CALL, ("general_chat", {})], finish="tool_calls"),
            id="OpenAI, two calls mixed",
        ),
        pytest.param(
            DASHSCOPE_THINKING,
            Seen(answer="巴黎。", reasoning="先想一想", finish="stop"),
            id="DashScope, thinking",
        ),
        pytest.param(
            DASHSCOPE_CALLS,
            Seen(calls=[CALL], finish="tool_calls"),
            id="DashScope, empty ids and names in later fragments",
        ),
        pytest.param(
            VLLM_REASONING,
            Seen(answer="Paris.", reasoning="Think.", finish="stop"),
            id="vLLM, reasoning and usage in every chunk",
        ),
        pytest.param(
            OLLAMA_CALLS,
            Seen(calls=[CALL, ("general_chat", {})], finish="tool_calls"),
            id="Ollama, whole calls that all have index 0",
        ),
        pytest.param(
            WITHOUT_INDEX,
            Seen(calls=[CALL, ("general_chat", {})], finish="stop"),
            id="calls without index and id",
        ),
        pytest.param(
            WITHOUT_IDS,
            Seen(calls=[CALL, ("general_chat", {}), ("general_chat", {})], finish="stop"),
            id="calls without ids that all have index 0",
        ),
        pytest.param(
            ANOTHER_ID_EACH,
            Seen(calls=[CALL], finish="tool_calls"),
            id="a call without index, of which each fragment has another id",
        ),
        pytest.param(
            REPEATED_NAME,
            Seen(calls=[CALL], finish="tool_calls"),
            id="a name in every fragment",
        ),
        pytest.param(
            MISTRAL_PARTS,
            Seen(answer="Paris.", reasoning="Hm.", finish="stop"),
            id="content in parts",
        ),
        pytest.param(
            REPEATED_ANSWER,
            Seen(answer="Paris.", finish="stop"),
            id="the whole answer repeated at the end",
        ),
        pytest.param(
            [delta(refusal="I cannot help."), delta(finish="stop")],
            Seen(answer="I cannot help.", finish="stop"),
            id="a refusal",
        ),
        pytest.param(
            OLD_CALL, Seen(calls=[CALL], finish="function_call"), id="the old form of a call"
        ),
        pytest.param(
            [delta("<THINK class='x'>Hm"), delta("m.</thi"), delta("nk>\n\nPa"), delta("ris."),
             delta(finish="stop")],
            Seen(answer="Paris.", reasoning="Hmm.", finish="stop"),
            id="think tags, cut, in capitals, with an attribute",
        ),
        pytest.param(
            [delta("<think>Hm, no end"), delta(finish="length")],
            Seen(reasoning="Hm, no end", finish="length"),
            id="think without end",
        ),
        pytest.param(
            [delta("Hm.</think>Paris."), delta(finish="stop")],
            Seen(answer="Hm.Paris.", finish="stop"),
            id="a closing tag alone is removed",
        ),
        pytest.param(
            [delta("a < b <"), delta(" c"), delta(finish="stop")],
            Seen(answer="a < b < c", finish="stop"),
            id="less than is no tag",
        ),
        pytest.param(
            [b': ping\n\nevent: message\ndata: {"choices": [{"delta":\r\n',
             b'data: {"content": "Paris."}, "finish_reason": "stop"}]}\r\n\r\n'],
            Seen(answer="Paris.", finish="stop"),
            id="a frame in two lines, comments, other line ends",
        ),
        pytest.param(
            [b"data:\n\n", delta("Par"), b"data: \n\nid: 7\nretry: 5\n\n", delta("is."),
             delta(finish="stop")],
            Seen(answer="Paris.", finish="stop"),
            id="events without data",
        ),
        pytest.param(
            [b'data: {"choices":[{"delta":{"content":"Par\xe5"}}]}\n\n', delta("is."),
             delta(finish="stop")],
            Seen(answer="Par\ufffdis.", finish="stop"),
            id="bytes that are not UTF-8",
        ),
        pytest.param(
            [b'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\n',
             b'data: {"choices":[{"delta":{"content":"\\ude00!"}}]}\n\n', delta(finish="stop")],
            Seen(answer="😀!", finish="stop"),
            id="a character cut into its surrogates",
        ),
        pytest.param(
            [{"choices": [], "prompt_filter_results": []}, {"choices": None, "usage": None},
             delta("Paris."), {"choices": [{"index": 1, "delta": {"content": "Rome."}}]},
             delta(finish="stop")],
            Seen(answer="Paris.", finish="stop"),
            id="frames without choices, and a second choice",
        ),
    ],
)  # fmt: skip
async def test_each_dialect_gives_the_same_message(
    sent: list[object], expected: Seen, cut: int
) -> None:
    with ModelServer([frames(sent, cut=cut)]) as server:
        async with opened(server.base_url) as model:
            seen = await watch(model.astream("Where is Paris?"))
    assert (seen.answer, seen.reasoning) == (expected.answer, expected.reasoning)
    assert (seen.calls, seen.finish, seen.error) == (expected.calls, expected.finish, None)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            WHOLE, Seen(answer="Paris.", reasoning="Hm.", finish="stop"), id="an answer"
        ),
        pytest.param(WHOLE_CALL, Seen(calls=[CALL], finish="tool_calls"), id="a call"),
    ],
)
@pytest.mark.parametrize("can_stream", [True, False], ids=["unasked", "asked for"])
async def test_a_whole_completion_gives_the_same_message(
    body: object, expected: Seen, *, can_stream: bool
) -> None:
    with ModelServer([whole(body)]) as server:
        async with opened(server.base_url, can_stream=can_stream) as model:
            seen = await watch(model.astream("Where is Paris?"))
    assert (seen.answer, seen.reasoning) == (expected.answer, expected.reasoning)
    assert (seen.calls, seen.finish, seen.error) == (expected.calls, expected.finish, None)
    assert server.seen[0].body["stream"] is can_stream


@pytest.mark.parametrize(
    ("pieces", "finish", "answer", "reasoning"),
    [
        pytest.param(["Hm, ", "so.\n</th", "ink>\n\nParis."], "stop", "Paris.",
                     "Hm, so.\n", id="as declared"),
        pytest.param(["Par", "is."], "stop", "Paris.", "Paris.", id="no reasoning this time"),
        pytest.param(["Hm, ", "so"], "length", "", "Hm, so", id="cut while it reasons"),
        pytest.param(["<think>Hm.</think>Paris."], "stop", "Paris.", "Hm.", id="both tags"),
    ],
)  # fmt: skip
async def test_reasoning_whose_opening_tag_is_declared_to_be_in_the_template(
    pieces: list[str], finish: str, answer: str, reasoning: str
) -> None:
    sent = [*(delta(piece) for piece in pieces), delta(finish=finish)]
    with ModelServer([frames(sent)]) as server:
        async with opened(server.base_url, reasoning_opened=True) as model:
            seen = await watch(model.astream("Where is Paris?"))
    assert (seen.answer, seen.reasoning) == (answer, reasoning)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param(OPENAI_ANSWER, (20, 3, {"reasoning": 2}, {"cache_read": 16}), id="OpenAI"),
        pytest.param(VLLM_REASONING, (4, 3, {}, {}), id="counted on in every chunk"),
        pytest.param(DASHSCOPE_THINKING, (9, 5, {}, {}), id="DashScope"),
        pytest.param(
            [
                delta("Hi."),
                {
                    **delta(finish="stop"),
                    "usage": {"prompt_tokens": 4.0, "completion_tokens": 2.0},
                },
            ],
            (4, 2, {}, {}),
            id="numbers with a point",
        ),
    ],
)
async def test_usage_is_counted_once(
    sent: list[object], expected: tuple[int, int, dict[str, int], dict[str, int]]
) -> None:
    with ModelServer([frames(sent)]) as server:
        async with opened(server.base_url) as model:
            message = await model.ainvoke("Where is Paris?")
    usage = message.usage_metadata
    assert usage is not None
    assert expected == (
        usage["input_tokens"],
        usage["output_tokens"],
        usage.get("output_token_details", {}),
        usage.get("input_token_details", {}),
    )


async def test_usage_of_which_a_part_is_missing_is_none() -> None:
    counted = {"completion_tokens": 2}
    with ModelServer(
        [frames([delta("Hi."), {**delta(finish="stop"), "usage": counted}])]
    ) as server:
        async with opened(server.base_url) as model:
            assert (await model.ainvoke("Where is Paris?")).usage_metadata is None
