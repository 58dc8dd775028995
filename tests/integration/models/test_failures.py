"""Everything that can go wrong between the request and the end of an answer."""

import pytest

from chatbot.errors import ModelError
from tests.integration.models.streams import PATIENT, STALLING, ask, opened, watch
from tests.servers.model import (
    ModelServer,
    Script,
    answer,
    calls,
    delta,
    frames,
    html,
    raw,
    refuse,
    reset,
    whole,
)

SECRET = "sk-secret-of-the-test"
TOO_LONG = {"message": "This model's maximum context length is 8192 tokens.", "code": None}


def in_stream(error: object, *, before: str = "") -> Script:
    sent = [delta(before)] if before else []
    return frames([*sent, {"error": error}])


@pytest.mark.parametrize(
    ("script", "kind", "words"),
    [
        pytest.param(refuse(400, "bad parameter"), "bad_request", "bad parameter", id="400"),
        pytest.param(refuse(401), "auth", "key", id="401"),
        pytest.param(refuse(402), "auth", "key", id="402"),
        pytest.param(refuse(403), "auth", "key", id="403"),
        pytest.param(refuse(404, "no model"), "bad_request", "name of the model", id="404"),
        pytest.param(refuse(408), "timeout", "too long", id="408"),
        pytest.param(refuse(413), "context_too_long", "Shorten", id="413"),
        pytest.param(refuse(422, "bad field"), "bad_request", "bad field", id="422"),
        pytest.param(refuse(429), "rate_limit", "a minute", id="429"),
        pytest.param(refuse(500), "server", "later", id="500"),
        pytest.param(refuse(502, body=b"<html>Bad</html>"), "server", "later", id="502"),
        pytest.param(refuse(503), "server", "later", id="503"),
        pytest.param(refuse(529, "overloaded"), "server", "later", id="529"),
        pytest.param(
            refuse(302, headers={"Location": "http://127.0.0.1:9/"}), "protocol", "redirects",
            id="a redirect",
        ),
        pytest.param(refuse(400, TOO_LONG), "context_too_long", "Shorten", id="too long"),
        pytest.param(
            refuse(400, {"code": "context_length_exceeded", "message": "no"}),
            "context_too_long", "Shorten", id="too long: a code",
        ),
        pytest.param(
            refuse(400, {"code": "invalid_parameter_error",
                         "message": "Range of input length should be [1, 129024]"}),
            "context_too_long", "Shorten", id="too long: DashScope",
        ),
        pytest.param(
            refuse(400, {"code": "data_inspection_failed", "message": "inappropriate content"}),
            "content_filter", "other words", id="filtered: DashScope",
        ),
        pytest.param(
            refuse(400, {"code": "content_filter", "message": "content management policy"}),
            "content_filter", "other words", id="filtered: OpenAI",
        ),
        pytest.param(
            refuse(400, {"code": "Arrearage", "message": "Access denied, overdue payment"}),
            "auth", "key", id="not paid: DashScope",
        ),
        pytest.param(
            refuse(429, {"code": "insufficient_quota", "message": "exceeded your quota"}),
            "rate_limit", "minute", id="no quota: OpenAI",
        ),
        pytest.param(
            refuse(400, body=b'{"object":"error","message":"qwen2 does not support tools"}'),
            "unsupported", "does not support tools", id="no tools: Ollama",
        ),
        pytest.param(refuse(400, body=b"what?"), "bad_request", "what?", id="400 with text"),
        pytest.param(
            refuse(400, body=b"[" * 9999), "bad_request", "refused", id="400 with brackets"
        ),
        pytest.param(reset(), "connection", "reached", id="a reset before the first byte"),
        pytest.param(html(), "protocol", "/v1", id="a web page"),
        pytest.param(whole({"choices": []}), "protocol", "no answer", id="empty choices"),
        pytest.param(whole({"choices": None}), "protocol", "no answer", id="null choices"),
        pytest.param(whole([]), "protocol", "shape", id="a list"),
        pytest.param(
            whole({"error": {"message": "no", "code": 429}}), "rate_limit", "minute",
            id="an error with status 200",
        ),
        pytest.param(
            whole({"code": "InvalidApiKey", "message": "Invalid API-key provided."}), "auth",
            "key", id="an error of DashScope with status 200",
        ),
        pytest.param(refuse(204, body=b""), "protocol", "204", id="204"),
        pytest.param(
            frames([delta(finish="abort")]), "interrupted", "broke off", id="an aborted answer"
        ),
        pytest.param(
            frames([delta(finish="insufficient_system_resource")]), "interrupted", "broke off",
            id="DeepSeek without resources",
        ),
        pytest.param(frames([]), "interrupted", "broke off", id="nothing but the end"),
        pytest.param(frames([], ending="close"), "interrupted", "broke off", id="no byte"),
        pytest.param(
            frames([{"choices": []}, {"choices": []}]), "protocol", "no answer",
            id="a stream of empty choices",
        ),
        pytest.param(
            frames([{"choices": None}]), "protocol", "no answer",
            id="a stream of null choices",
        ),
        pytest.param(frames([b"data: {\n\n"]), "protocol", "JSON", id="broken JSON"),
        pytest.param(frames([b"data: 7\n\n"]), "protocol", "shape", id="a number"),
        pytest.param(
            refuse(200, body=b"Hello there."), "protocol", "neither JSON nor", id="a text"
        ),
        pytest.param(whole(None), "protocol", "neither JSON nor", id="null"),
        pytest.param(raw(b"hello\r\n\r\n"), "protocol", "not HTTP", id="no HTTP"),
        pytest.param(
            raw(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 99_999 + b"\r\n\r\n"), "protocol",
            "not HTTP", id="a header without end",
        ),
        pytest.param(
            frames([{"choices": [{"delta": "Paris"}]}]), "protocol", "shape",
            id="a text as delta",
        ),
        pytest.param(frames([{"choices": {}, "id": 1}]), "protocol", "", id="choices no list"),
        pytest.param(
            frames([b"data: " + b"[" * 99_999 + b"\n\n"]), "protocol", "JSON",
            id="brackets without end",
        ),
        pytest.param(
            in_stream({"message": "slow down", "type": "rate_limit_exceeded"}),
            "rate_limit", "minute", id="rate limit in the stream",
        ),
        pytest.param(
            in_stream({"message": "boom", "type": "BadRequestError", "code": 400}),
            "bad_request", "boom", id="vLLM's error in the stream",
        ),
        pytest.param(in_stream("overloaded"), "server", "later", id="a text as error"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("can_stream", [True, False], ids=["streaming", "blocking"])
async def test_a_failure_before_the_first_token(
    script: Script, kind: str, words: str, *, can_stream: bool
) -> None:
    seen = await ask(script, can_stream=can_stream)
    assert (seen.kind, seen.answer) == (kind, "")
    assert words in str(seen.error)
    assert SECRET not in repr(seen.error)


@pytest.mark.parametrize(
    ("script", "kind", "begun"),
    [
        pytest.param(answer("one two", finish=None), "interrupted", "one two", id="no reason"),
        pytest.param(
            answer("one two", finish=None, ending="close"), "interrupted", "one two",
            id="a clean close",
        ),
        pytest.param(
            answer("one two", finish=None, ending="reset"), "interrupted", "one two",
            id="a reset",
        ),
        pytest.param(
            answer("one two", finish=None, ending="stall"), "timeout", "one two", id="a stall"
        ),
        pytest.param(
            frames([delta("one "), *[b": ping\n\n"] * 40], delay=0.02), "timeout", "one ",
            id="heartbeats",
        ),
        pytest.param(
            frames([delta("one "), *[delta("")] * 40], delay=0.02), "timeout", "one ",
            id="empty chunks",
        ),
        pytest.param(
            in_stream({"code": "data_inspection_failed", "message": "bad"}, before="one "),
            "content_filter", "one ", id="DashScope's filter",
        ),
        pytest.param(
            frames([delta("one "), {"error": {"type": "server_error", "message": "x"}}],
                   together=True),
            "server", "one ", id="an error in the same read",
        ),
        pytest.param(
            frames([delta("one "), b"data: {oops\n\n"]), "protocol", "one ", id="broken JSON"
        ),
    ],
)  # fmt: skip
async def test_a_failure_in_the_middle_of_an_answer(
    script: Script, kind: str, begun: str
) -> None:
    seen = await ask(script, limits=STALLING if kind == "timeout" else PATIENT)
    assert (seen.kind, seen.answer, seen.finish) == (kind, begun, None)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        pytest.param("length", "length", id="length"),
        pytest.param("content_filter", "content_filter", id="filter"),
        pytest.param("STOP", "stop", id="in capitals"),
        pytest.param("max_tokens", "length", id="length in other words"),
        pytest.param("sensitive", "content_filter", id="filter in other words"),
        pytest.param("new_reason", "new_reason", id="one that nobody knows"),
    ],
)
async def test_the_reason_of_the_end_is_reported(given: str, reason: str) -> None:
    seen = await ask(answer("Par", finish=given))
    assert (seen.finish, seen.error) == (reason, None)


@pytest.mark.parametrize("reason", ["length", "max_tokens", "content_filter"])
async def test_a_call_that_was_cut_is_no_call(reason: str) -> None:
    cut = calls([("knowledge_base", '{"question": "wh')], finish=reason)
    with ModelServer([cut]) as server:
        async with opened(server.base_url) as model:
            message = await model.ainvoke("Where is Paris?")
            seen = await watch(model.astream("Where is Paris?"))
    assert message.tool_calls == []
    assert [call["name"] for call in message.invalid_tool_calls] == ["knowledge_base"]
    assert seen.calls == []


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        pytest.param({"Retry-After": "7"}, 7, id="seconds"),
        pytest.param({"Retry-After-Ms": "1500", "Retry-After": "2"}, 1.5, id="milliseconds"),
        pytest.param({"Retry-After": "86400"}, 600, id="too many seconds"),
        pytest.param({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0, id="a date gone by"),
        pytest.param({"Retry-After": "soon"}, None, id="a word"),
        pytest.param({}, None, id="nothing"),
    ],
)
async def test_what_a_rate_limit_asks_for(
    headers: dict[str, str], seconds: float | None
) -> None:
    seen = await ask(refuse(429, headers=headers))
    assert isinstance(seen.error, ModelError)
    assert seen.error.retry_after == seconds


async def test_what_an_endpoint_says_stays_readable() -> None:
    told = "请求的参数有误，请联系管理员确认该模型是否已经部署并检查各项参数设置是否正确。"
    assert told in str((await ask(refuse(400, told))).error)


async def test_no_error_holds_the_key() -> None:
    told = f"Incorrect API key provided: {SECRET}. Also Bearer {SECRET} and sk-abcdef123456."
    for script in (refuse(400, told), refuse(401, told), in_stream({"message": told})):
        seen = await ask(script)
        assert SECRET not in str(seen.error)
        assert "sk-abcdef" not in str(seen.error)
