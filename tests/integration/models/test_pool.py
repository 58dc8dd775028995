"""Several endpoints behind one model: turns, failures, rests."""

import asyncio
import threading
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.messages import HumanMessage

from chatbot.errors import ModelError
from chatbot.models.pool import ModelPool
from chatbot.models.selection import open_model, select_model
from chatbot.models.tokens import CautiousCounter, estimate
from chatbot.settings import Settings
from tests.integration.models.streams import Seen, until, watch
from tests.integration.models.test_openai_compatible import City, Runs, knowledge_base
from tests.servers.loopback import Reply
from tests.servers.model import (
    ChatRequest,
    ModelServer,
    Script,
    answer,
    by_key,
    call,
    delta,
    frames,
    hang,
    html,
    refuse,
    reset,
)
from tests.stopwatch import Stopwatch

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
FORMAT = {"type": "json_schema", "json_schema": {"name": "answer", "schema": {}}}
SHORT: Mapping[str, Any] = {"first_token_timeout_seconds": 1}  # for what says nothing


@asynccontextmanager
async def pool_of(server: ModelServer, keys: str, **options: Any) -> AsyncIterator[ModelPool]:
    values = {"llm_model": "m", **options}
    settings = Settings(openai_base_url=server.base_url, openai_api_key=keys, **values)
    choice = select_model(settings)
    assert choice is not None
    async with open_model(choice, settings) as pool:
        yield pool


async def ask(pool: ModelPool) -> Seen:
    return await watch(pool.astream("Where is Paris?"))


@pytest.mark.parametrize(
    ("script", "kind", "seconds"),
    [
        pytest.param(refuse(429), "rate_limit", 60, id="rate limit"),
        pytest.param(
            refuse(429, headers={"Retry-After": "5"}), "rate_limit", 5,
            id="rate limit with time",
        ),
        pytest.param(
            frames([{"error": {"code": "rate_limit_exceeded", "message": "slow down"}}]),
            "rate_limit", 60, id="rate limit in the stream",
        ),
        pytest.param(refuse(401), "auth", 10, id="wrong key"),
        pytest.param(refuse(503), "server", 10, id="server error"),
        pytest.param(reset(), "connection", 10, id="reset"),
        pytest.param(hang(), "timeout", 10, id="silence"),
        pytest.param(html(), "protocol", 10, id="web page"),
        pytest.param(
            frames([delta("", role="assistant")], ending="close"), "interrupted", 10,
            id="cut after the role",
        ),
    ],
)  # fmt: skip
async def test_a_failing_endpoint_rests_and_the_next_one_answers(
    script: Script, kind: str, seconds: float
) -> None:
    with ModelServer(by_key({"bad": script, "good": answer("Paris.")})) as server:
        options = SHORT if kind == "timeout" else {}
        async with pool_of(server, "bad,good", **options) as pool:
            seen = [await ask(pool) for _ in range(3)]
            state, other = pool.states()
    assert [one.answer for one in seen] == ["Paris."] * 3
    assert Counter(request.key for request in server.seen) == {"bad": 1, "good": 3}
    assert (state.state, state.error, state.calls, state.failures) == ("cooling", kind, 1, 1)
    assert seconds - 2 < state.seconds <= seconds
    assert (other.state, other.calls, other.failures) == ("ready", 3, 0)


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        pytest.param(refuse(400, "no"), "bad_request", id="bad request"),
        pytest.param(refuse(404), "bad_request", id="no such model"),
        pytest.param(refuse(413), "context_too_long", id="too long"),
        pytest.param(
            refuse(400, {"code": "data_inspection_failed"}), "content_filter", id="filtered"
        ),
    ],
)
async def test_a_refused_request_is_not_tried_elsewhere(script: Script, kind: str) -> None:
    with ModelServer(by_key({"one": script, "two": answer("Paris.")})) as server:
        async with pool_of(server, "one,two") as pool:
            seen = await ask(pool)
            states = pool.states()
    assert (seen.kind, len(server.seen)) == (kind, 1)
    assert [state.state for state in states] == ["ready", "ready"]


async def test_nothing_is_repeated_once_a_piece_is_out() -> None:
    cut = answer("one two", finish=None, ending="close")
    with ModelServer(by_key({"one": cut, "two": answer("Paris.")})) as server:
        async with pool_of(server, "one,two") as pool:
            seen = await ask(pool)
            after = await ask(pool)
            states = pool.states()
    assert (seen.answer, seen.kind) == ("one two", "interrupted")
    assert (after.answer, [state.state for state in states]) == ("Paris.", ["cooling", "ready"])


@pytest.mark.parametrize("keys", ["one", "one,two"])
@pytest.mark.parametrize(
    ("script", "failures"),
    [
        pytest.param(answer("one two", finish=None, ending="close"), 1, id="closed"),
        pytest.param(answer("one two", finish=None, ending="reset"), 1, id="reset"),
        pytest.param(refuse(500), 4, id="500"),
        pytest.param(html(), 4, id="web page"),
    ],
)
async def test_what_one_request_met_turns_nobody_else_away(
    script: Script, failures: int, keys: str
) -> None:
    broken = threading.Event()

    def reply(request: ChatRequest) -> Script:
        del request
        return answer("Paris.") if broken.is_set() else script

    with ModelServer(reply) as server:
        async with pool_of(server, keys) as pool:
            error = (await ask(pool)).error
            while (kinds := {each.error for each in pool.states()}) == {None} or None in kinds:
                await ask(pool)  # until every endpoint has failed
            broken.set()
            asked = len(server.seen)
            after = [await ask(pool), await ask(pool)]
    assert error is not None
    assert error.retry_after is None
    assert [each.answer for each in after] == ["Paris."] * 2
    assert 1 <= asked <= failures * len(keys.split(","))
    assert len(server.seen) == asked + 2


async def test_an_endpoint_in_doubt_is_asked_where_the_others_rest() -> None:
    scripts = {"limited": [refuse(429)], "broken": [html(), answer("Paris.")]}

    def reply(request: ChatRequest) -> Script:
        each = scripts[request.key]
        return each.pop(0) if len(each) > 1 else each[0]

    with ModelServer(reply) as server:
        async with pool_of(server, "limited,broken") as pool:
            error = (await ask(pool)).error
            assert (await ask(pool)).answer == "Paris."
    assert error is not None
    assert error.retry_after is None
    assert error.message.endswith("Try again.")
    assert [request.key for request in server.seen] == ["limited", "broken", "broken"]


async def test_a_limit_met_in_the_middle_of_an_answer_tells_when_to_try_again() -> None:
    limit = {"error": {"code": "rate_limit_exceeded", "message": "slow down"}}
    with ModelServer([frames([delta("Par"), limit])]) as server:
        async with pool_of(server, "one") as pool:
            first, second = await ask(pool), await ask(pool)
    assert (first.answer, len(server.seen)) == ("Par", 1)
    for error in (first.error, second.error):
        assert error is not None
        assert error.retry_after is not None
        assert 58 < error.retry_after <= 60


async def test_the_last_chunk_tells_who_answered_and_who_did_not() -> None:
    with ModelServer(by_key({"bad": refuse(401), "good": answer("Paris.")})) as server:
        async with pool_of(server, "bad,good") as pool:
            message = await pool.ainvoke("Where is Paris?")
    assert message.response_metadata["endpoint"] == "m (key 2)"
    assert message.response_metadata["attempts"] == [{"endpoint": "m (key 1)", "kind": "auth"}]


@pytest.mark.parametrize(
    ("script", "kind", "seconds", "requests"),
    [
        pytest.param(
            refuse(429, headers={"Retry-After": "7"}), "rate_limit", 7, 2, id="rate limit"
        ),
        pytest.param(refuse(401), "auth", 10, 2, id="wrong keys"),
    ],
)
async def test_where_all_rest_the_call_fails_at_once(
    script: Script, kind: str, seconds: float, requests: int
) -> None:
    with ModelServer([script]) as server:
        async with pool_of(server, "one,two") as pool:
            first = await ask(pool)
            stopwatch = Stopwatch()
            second = await ask(pool)
            assert stopwatch.seconds() < 0.1
    assert (first.kind, second.kind, len(server.seen)) == (kind, kind, requests)
    assert second.error is not None
    assert second.error.retry_after is not None
    assert seconds - 1 < second.error.retry_after <= seconds
    assert f"in {seconds:g} seconds" in str(second.error)


async def test_the_soonest_endpoint_tells_when_to_try_again() -> None:
    slow = refuse(429, headers={"Retry-After": "60"})
    soon = refuse(429, headers={"Retry-After": "5"})
    with ModelServer(by_key({"slow": slow, "soon": soon})) as server:
        async with pool_of(server, "soon,slow") as pool:
            error = (await ask(pool)).error
    assert error is not None
    assert error.retry_after is not None
    assert 4 < error.retry_after <= 5
    assert "in 5 seconds" in str(error)


async def test_a_failure_that_passes_is_tried_again() -> None:
    with ModelServer([reset(), refuse(503), answer("Paris.")]) as server:
        async with pool_of(server, "one") as pool:
            seen = await ask(pool)
            state = pool.states()[0]
    assert (seen.answer, len(server.seen)) == ("Paris.", 3)
    assert (state.state, state.calls, state.failures) == ("ready", 3, 2)


async def test_a_failure_that_took_long_is_not_tried_again() -> None:
    async def give_up(request: ChatRequest, reply: Reply) -> None:
        await asyncio.sleep(0.6)
        await refuse(504)(request, reply)

    with ModelServer([give_up]) as server:
        async with pool_of(server, "one", first_token_timeout_seconds=2) as pool:
            seen = await ask(pool)
    assert (seen.kind, len(server.seen)) == ("server", 1)


async def test_retries_end_with_the_time_of_the_call() -> None:
    with ModelServer([refuse(503)]) as server:
        async with pool_of(server, "one", turn_timeout_seconds=0.19) as pool:
            seen = await ask(pool)
    assert seen.kind in {"server", "timeout"}  # the latter on a machine that is slow
    assert len(server.seen) == 1


async def test_many_calls_are_spread_evenly() -> None:
    with ModelServer([answer("Paris.")]) as server:
        async with pool_of(server, "one,two,three") as pool:
            await asyncio.gather(*(ask(pool) for _ in range(30)))
    counted = Counter(request.key for request in server.seen)
    assert counted == {"one": 10, "two": 10, "three": 10}


async def test_tools_tracing_and_structured_output_work_through_the_pool() -> None:
    runs = Runs()
    replies = by_key({"bad": refuse(401), "good": call("City", {"name": "Paris"})})
    with ModelServer(replies) as server:
        async with pool_of(server, "bad,good") as pool:
            structured = pool.with_structured_output(City)
            found = await structured.ainvoke("Where?", config={"callbacks": [runs]})
            bound = pool.bind_tools([knowledge_base], tool_choice="knowledge_base")
            await bound.ainvoke("Where?")
    assert found == City(name="Paris")
    assert (runs.started, runs.ended, runs.failed) == (1, 1, 0)
    assert server.seen[-1].body["tool_choice"]["function"] == {"name": "knowledge_base"}


async def test_cancelling_closes_the_request_and_blames_nobody() -> None:
    with ModelServer([hang()]) as server:
        async with pool_of(server, "one") as pool:
            task = asyncio.create_task(ask(pool))
            await until(lambda: len(server.seen) == 1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            state = pool.states()[0]
    assert (state.state, state.failures) == ("ready", 0)


async def test_an_image_for_models_that_see_none_is_refused_before_any_call() -> None:
    with ModelServer([answer("A cat.")]) as server:
        async with pool_of(server, "one") as pool:
            with pytest.raises(ModelError, match="reads images") as caught:
                await pool.ainvoke([HumanMessage([IMAGE])])
    assert (caught.value.kind, len(server.seen)) == ("unsupported", 0)


async def test_an_estimate_makes_the_next_one_exact() -> None:
    with ModelServer([answer("Paris is the capital of France.", usage=None)]) as server:
        async with pool_of(server, "one", llm_model="gpt-4o") as pool:
            await ask(pool)  # its end does not wait for the tokenizer, which is read meanwhile
            await until(lambda: pool.context.counter.is_loaded, seconds=20)
            assert (await ask(pool)).usage == {
                "input_tokens": 11, "output_tokens": 7, "total_tokens": 18,
            }  # fmt: skip


async def test_usage_that_nobody_reports_is_estimated_and_marked() -> None:
    with ModelServer([answer("Paris is the capital of France.", usage=None)]) as server:
        async with pool_of(server, "one") as pool:
            message = await pool.ainvoke("Where is Paris?")
    assert message.usage_metadata is not None
    assert 5 < message.usage_metadata["input_tokens"] < 20
    assert 5 < message.usage_metadata["output_tokens"] < 15
    assert message.response_metadata["usage_estimated"] is True


@pytest.mark.parametrize("model", ["m", "qwen-plus"])
async def test_reported_usage_corrects_the_counts(model: str) -> None:
    with ModelServer([answer("Paris.", usage=(500, 5))]) as server:
        async with pool_of(server, "one", llm_model=model) as pool:
            before = pool.context.counter.count("word " * 100)
            await pool.ainvoke("word " * 100)
            after = pool.context.counter.count("word " * 100)
    assert after > before


async def test_usage_corrects_the_counts_of_the_model_that_reported_it(tmp_path: Path) -> None:
    with ModelServer([answer("Paris.", usage=(500, 5))]) as server:
        file = tmp_path / "models.toml"
        file.write_text(
            "".join(
                f"[[endpoint]]\nmodel = '{name}'\nbase_url = '{server.base_url}'\n"
                for name in ("qwen-plus", "llama3")
            )
        )
        settings = Settings(models_file=file)
        choice = select_model(settings)
        assert choice is not None
        async with open_model(choice, settings) as pool:
            counter = pool.context.counter
            assert isinstance(counter, CautiousCounter)
            before = counter.of("llama3").count("word " * 100)
            await pool.ainvoke("word " * 100)
            corrected = counter.of("qwen-plus").count("word " * 100)
            assert counter.of("llama3").count("word " * 100) == before
            assert counter.count("word " * 100) == max(corrected, before)


async def test_images_do_not_spoil_the_counts() -> None:
    with ModelServer([answer("A cat.", usage=(5000, 5))]) as server:
        async with pool_of(server, "one", llm_model="gpt-4o") as pool:
            await pool.ainvoke([HumanMessage([IMAGE])])
            assert pool.context.counter.count("word " * 99) == round(estimate("word " * 99))


async def test_the_window_is_that_of_the_settings() -> None:
    with ModelServer([answer("Paris.")]) as server:
        async with pool_of(server, "one", context_window=9000, output_tokens=1000) as pool:
            await pool.ainvoke("Where is Paris?")
            assert pool.context.budget == 8000
    assert server.seen[0].body["max_tokens"] == 1000


async def test_after_a_rest_one_call_tries_and_the_others_fail_at_once() -> None:
    limited = refuse(429, headers={"Retry-After": "1"})
    go_on = threading.Event()
    with ModelServer([limited, answer("Paris.", wait=go_on)]) as server:
        async with pool_of(server, "one") as pool:
            assert (await ask(pool)).kind == "rate_limit"
            await asyncio.sleep(1)
            trying = asyncio.create_task(ask(pool))
            await until(lambda: len(server.seen) == 2)
            stopwatch = Stopwatch()
            error = (await ask(pool)).error
            assert stopwatch.seconds() < 0.1
            go_on.set()
            assert (await trying).answer == "Paris."
            assert (await ask(pool)).answer == "Paris."
    assert error is not None
    assert (error.kind, error.retry_after, len(server.seen)) == ("rate_limit", 1, 3)
    assert error.message.endswith("Try again in 1 second.")


async def test_while_one_endpoint_is_tried_the_calls_go_to_another() -> None:
    limited = refuse(429, headers={"Retry-After": "1"})
    replies = {"bad": [limited, hang()], "good": [answer("Paris.")]}

    def reply(request: ChatRequest) -> Script:
        scripts = replies[request.key]
        return scripts.pop(0) if len(scripts) > 1 else scripts[0]

    with ModelServer(reply) as server:
        async with pool_of(server, "bad,good") as pool:
            await ask(pool)
            await asyncio.sleep(1)
            trying = [asyncio.create_task(ask(pool)) for _ in range(2)]
            await until(lambda: [each.key for each in server.seen].count("bad") == 2)
            assert [(await ask(pool)).answer for _ in range(3)] == ["Paris."] * 3
            for each in trying:
                each.cancel()
            await asyncio.gather(*trying, return_exceptions=True)
    assert Counter(request.key for request in server.seen)["bad"] == 2


async def test_where_nothing_answers_the_error_names_each_endpoint_and_why(
    tmp_path: Path,
) -> None:
    with ModelServer(by_key({"": refuse(500), "sk-hidden-1": refuse(401)})) as server:
        address = server.base_url.replace("http://", "http://ann:hidden-2@") + "?key=hidden-3"
        file = tmp_path / "models.toml"
        file.write_text(
            f"[[endpoint]]\nmodel = 'one'\nbase_url = '{address}'\napi_key = 'sk-hidden-1'\n"
            f"[[endpoint]]\nmodel = 'two'\nname = 'spare'\nbase_url = 'http://127.0.0.1:9/v1'"
        )
        settings = Settings(models_file=file)
        choice = select_model(settings)
        assert choice is not None
        async with open_model(choice, settings) as pool:
            errors = [(await ask(pool)).error for _ in range(2)]
            states = pool.states()
    assert server.requests[0].query == {"key": ["hidden-3"]}
    for error in errors:
        assert error is not None
        assert "(one: the API key was refused; spare, two: no connection)" in error.message
        assert f"one at 127.0.0.1:{server.port}: the API key was refused" in error.in_full
        assert "spare, two at 127.0.0.1:9: no connection" in error.in_full
        assert error.in_full in "".join(traceback.format_exception(error))
        assert "127" not in f"{error} {error!r}"
        assert "hidden" not in error.in_full
        assert (error.kind, error.retryable) == ("connection", True)
    assert [(state.model, state.address) for state in states] == [
        ("one", server.base_url),
        ("two", "http://127.0.0.1:9/v1"),
    ]


async def test_a_call_in_a_hurry_leaves_a_slow_endpoint_for_another() -> None:
    with ModelServer(by_key({"slow": hang(), "quick": answer("Paris.")})) as server:
        async with pool_of(server, "slow,quick") as pool:
            seen = await ask(pool.within(1.5))
            states = pool.states()
    assert (seen.answer, [state.state for state in states]) == ("Paris.", ["cooling", "ready"])


async def test_endpoints_that_are_too_slow_for_a_hurry_can_still_be_asked() -> None:
    with ModelServer([answer("Paris.", wait=0.3)]) as server:
        async with pool_of(server, "one,two") as pool:
            assert (await ask(pool.within(0.1))).kind == "timeout"
            assert (await ask(pool)).answer == "Paris."


@pytest.mark.parametrize(
    "failure", [refuse(500), frames([delta("")], ending="close")], ids=["500", "cut off"]
)
async def test_the_last_endpoint_that_fails_in_a_hurry_can_still_be_asked(
    failure: Script,
) -> None:
    with ModelServer([failure] * 3 + [answer("Paris.")]) as server:
        async with pool_of(server, "one") as pool:
            assert (await ask(pool.within(10))).error is not None
            assert (await ask(pool)).answer == "Paris."


async def test_one_of_two_that_fails_in_a_hurry_rests() -> None:
    with ModelServer(by_key({"bad": refuse(500), "good": answer("Paris.")})) as server:
        async with pool_of(server, "bad,good") as pool:
            assert (await ask(pool.within(10))).answer == "Paris."
            states = pool.states()
    assert [state.state for state in states] == ["cooling", "ready"]


@pytest.mark.parametrize(
    ("question", "options", "model"),
    [
        pytest.param([IMAGE], {}, "with-vision", id="an image"),
        pytest.param("Where?", {"response_format": FORMAT}, "with-schemas", id="a schema"),
        pytest.param("Where?", {"tools": [{"type": "function"}]}, "with-tools", id="a tool"),
    ],
)
async def test_a_call_goes_to_an_endpoint_that_can_do_what_it_asks(
    question: Any, options: dict[str, Any], model: str, tmp_path: Path
) -> None:
    with ModelServer([answer("Paris.")]) as server:
        file = tmp_path / "models.toml"
        file.write_text(
            "\n".join(
                f"[[endpoint]]\nmodel = 'with-{name}'\nbase_url = '{server.base_url}'\n"
                f"vision = {vision}\njson_schema = {schema}\ntools = {tools}"
                for name, vision, schema, tools in (
                    ("nothing", "false", "false", "false"),
                    ("vision", "true", "false", "false"),
                    ("schemas", "false", "true", "false"),
                    ("tools", "false", "false", "true"),
                )
            )
        )
        settings = Settings(models_file=file)
        choice = select_model(settings)
        assert choice is not None
        async with open_model(choice, settings) as pool:
            for _ in range(3):
                await pool.ainvoke([HumanMessage(question)], **options)
    assert {request.body["model"] for request in server.seen} == {model}


async def test_nothing_blocks_the_event_loop() -> None:
    with ModelServer([answer("Paris.", usage=None)]) as server, blockbuster_ctx():
        async with pool_of(server, "one") as pool:
            assert (await ask(pool)).answer == "Paris."
            await pool.context.fit([HumanMessage("word " * 22_000)])


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        pytest.param(refuse(429), "rate_limit", id="rate limit"),
        pytest.param(refuse(503), "server", id="server error"),
        pytest.param(refuse(400, "no"), "bad_request", id="bad request"),
        pytest.param(reset(), "connection", id="reset"),
        pytest.param(hang(), "timeout", id="silence"),
    ],
)
async def test_a_call_on_a_guess_is_not_held_against_an_endpoint(
    script: Script, kind: str
) -> None:
    with ModelServer([script, answer("Paris.")]) as server:
        options = SHORT if kind == "timeout" else {}
        async with pool_of(server, "key", **options) as pool:
            assert (await ask(pool.guessing())).kind == kind
            assert len(server.seen) == 1
            [state] = pool.states()
            assert (state.state, state.failures) == ("ready", 0)
            assert (await ask(pool)).answer == "Paris."


@pytest.mark.parametrize("is_wanted", ["before", "after", ""])
async def test_a_guess_that_breaks_off_is_held_against_an_endpoint_if_it_is_wanted(
    is_wanted: str,
) -> None:
    cut = frames([delta("Par")], ending="close")
    with ModelServer(by_key({"bad": cut, "good": answer("Paris.")})) as server:
        async with pool_of(server, "bad,good") as pool:
            early = pool.guessing()
            if is_wanted == "before":
                early.wanted()
            assert (await ask(early)).kind == "interrupted"
            if is_wanted == "after":
                early.wanted()
            assert pool.states()[0].state == ("cooling" if is_wanted else "ready")


async def test_a_guess_leaves_an_endpoint_alone_that_has_failed() -> None:
    with ModelServer(by_key({"bad": refuse(503), "good": answer("Paris.")})) as server:
        async with pool_of(server, "bad,good") as pool:
            assert (await ask(pool)).answer == "Paris."
            assert [(await ask(pool.guessing())).answer for _ in range(3)] == ["Paris."] * 3
    assert Counter(request.key for request in server.seen) == {"bad": 1, "good": 4}
