import asyncio
import uuid
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from chatbot.domain import Session
from chatbot.errors import InputError, KnowledgeBaseError, ModelError, TooLargeError
from chatbot.events import Event
from chatbot.limits import Limits
from graphs import Chatbot, Context
from tests.integration.graph.conftest import Bench, kinds
from tests.ports import Call, Said

LOOK_UP = Said(call=Call("knowledge_base", '{"assistants": ["handbook"]}'))
CHAT = Said(call=Call("general_chat"))


async def events_of(bot: Chatbot, question: str, **choices: Any) -> list[Event]:
    return [event async for event in bot.stream(question, **choices)]


def data(events: list[Event], kind: str) -> Any:
    found = [event["data"] for event in events if event["type"] == kind]
    assert len(found) == 1, f"{len(found)} events of type {kind}"
    return found[0]


async def test_a_question_for_the_knowledge_base(bench: Bench) -> None:
    bench.script(LOOK_UP, Said(["15 days ", "[", "1].", " More [7]."], reasoning="hm"))
    events = await events_of(bench.bot, "benefits ?", session_id="s")
    assert kinds(events) == [
        *("stage", "metadata", "stage", "reasoning", "content", "citations", "usage", "end")
    ]
    metadata = data(events, "metadata")
    assert metadata["intent"] == "knowledge_base"
    assert metadata["session_id"] == "s"
    assert (metadata["original_query"], metadata["enhanced_query"]) == ("benefits ?",) * 2
    assert metadata["assistants"] == ["handbook"]
    assert metadata["degraded"] == []
    end = data(events, "end")
    assert end["full_answer"] == "15 days [1]. More."
    assert end["full_answer"] == "".join(e["data"] for e in events if e["type"] == "content")
    [citation] = data(events, "citations")
    assert (citation["number"], citation["document"]) == (1, "handbook.md")
    [turn] = await bench.bot.turns("s")
    assert (turn.id, turn.status) == (metadata["turn_id"], "complete")
    assert (turn.question, turn.answer) == ("benefits ?", end["full_answer"])
    assert turn.record["citations"] == [citation]
    assert [p["document"] for p in turn.record["passages"]] == ["handbook.md"]
    assert turn.record["reason"] == "the model called knowledge_base"


async def test_small_talk_asks_nothing_of_the_knowledge_base(bench: Bench) -> None:
    bench.script(CHAT, Said(["Hello", "!"]))
    events = await events_of(bench.bot, "hi")
    assert kinds(events) == ["stage", "metadata", "stage", "content", "usage", "end"]
    assert data(events, "metadata")["intent"] == "general_chat"
    assert bench.knowledge.queries == []


async def test_a_follow_up_is_put_in_context_by_the_router(bench: Bench) -> None:
    bench.script(LOOK_UP, Said(["一本书 [1]"]))
    await bench.bot.ask("benefits 瓦尔登湖 是什么", session_id="s")
    arguments = '{"assistants": ["瓦尔登湖"], "question": "瓦尔登湖 的风景怎么样"}'
    bench.script(Said(call=Call("knowledge_base", arguments)), Said(["很美 [1]"]))
    answer = await bench.bot.ask("那它的风景怎么样", session_id="s")
    assert answer.metadata["enhanced_query"] == "瓦尔登湖 的风景怎么样"
    assert bench.knowledge.queries[-1] == ("瓦尔登湖 的风景怎么样", ("瓦尔登湖",))
    assert bench.used_up()
    assert answer.citations[0]["document"] == "瓦尔登湖.md"


@pytest.mark.parametrize(
    ("arguments", "rewritten", "query"),
    [
        pytest.param("{}", "瓦尔登湖 的风景", "瓦尔登湖 的风景", id="no question: rewritten"),
        pytest.param('{"question": ""}', "瓦尔登湖 呢", "瓦尔登湖 呢", id="empty: rewritten"),
        pytest.param(
            '{"question": "How is it?"}', "瓦尔登湖 呢", "瓦尔登湖 呢", id="translated"
        ),
        pytest.param("{}", "What about it?", "那它 呢", id="a bad rewrite falls back"),
        pytest.param("not json", "瓦尔登湖 呢", "瓦尔登湖 呢", id="unreadable arguments"),
        pytest.param('["a"]', "瓦尔登湖 呢", "瓦尔登湖 呢", id="arguments are a list"),
    ],
)
async def test_a_rewriting_call_runs_only_where_the_router_gave_no_question(
    bench: Bench, arguments: str, rewritten: str, query: str
) -> None:
    bench.script(CHAT, Said(["hi"]))
    await bench.bot.ask("你好", session_id="s")
    bench.script(Said(call=Call("knowledge_base", arguments)), Said([rewritten]), Said(["x"]))
    events = await events_of(bench.bot, "那它 呢", session_id="s")
    assert data(events, "metadata")["enhanced_query"] == query
    assert {"name": "rewriting", "detail": ""} in [e["data"] for e in events]
    assert rewritten not in data(events, "end")["full_answer"]
    assert bench.used_up()


async def test_a_rewritten_question_that_was_cut_off_is_not_searched_for(bench: Bench) -> None:
    bench.script(CHAT, Said(["hi"]))
    await bench.bot.ask("你好", session_id="s")
    cut = Said(["瓦尔登湖的风景怎么样，那里"], finish="length")
    bench.script(Said(call=Call("knowledge_base", "{}")), cut, Said(["x"]))
    events = await events_of(bench.bot, "瓦尔登湖 呢", session_id="s")
    assert data(events, "metadata")["enhanced_query"] == "瓦尔登湖 呢"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        pytest.param(Said(["I think…"]), "the model called no tool", id="text only"),
        pytest.param(Said(call=Call("search")), "the model called no tool", id="unknown tool"),
        pytest.param(
            Said(call=LOOK_UP.call, finish="length"), "the router's call was cut off", id="cut"
        ),
        pytest.param(
            Said(error=ModelError("server", "down")),
            "the router failed (model_server)",
            id="failed",
        ),
        pytest.param(
            Said(pause=asyncio.Event()), "the router did not answer within 0.1 s", id="hangs"
        ),
    ],
)
async def test_a_router_that_fails_yields_the_default_route(
    bench: Bench, said: Said, reason: str
) -> None:
    bench.limits = replace(bench.limits, router_seconds=0.1 if said.pause else 30)
    bench.script(said, Said(["Hello"]))
    events = await events_of(bench.bot, "benefits ?")
    metadata = data(events, "metadata")
    assert metadata["intent"] == "general_chat"
    assert metadata["reason"] == f"default route: {reason}"
    assert metadata["degraded"] == [{"part": "router", "reason": reason}]
    assert data(events, "end")["full_answer"] == "Hello"


async def test_the_router_sees_the_intents_of_its_own_session_only(bench: Bench) -> None:
    for session in ("one", "two"):
        bench.script(LOOK_UP if session == "one" else CHAT, Said(["x"]))
        await bench.bot.ask("benefits", session_id=session)
    bench.script(CHAT, Said(["x"]))
    await bench.bot.ask("again", session_id="two")
    system = str(bench.model.prompts[-2][0].content)
    assert system.endswith("oldest first: general_chat")
    assert not any("benefits ?" in str(m.content) for m in bench.model.prompts[-1])


@pytest.mark.parametrize(
    ("kind", "question", "told"),
    [
        pytest.param("unavailable", "福利有哪些", "知识库现在连接不上", id="down, in Chinese"),
        pytest.param("unavailable", "benefits", "cannot be reached", id="down, in English"),
        pytest.param("forbidden", "福利有哪些", "拒绝了访问", id="forbidden, in Chinese"),
        pytest.param("forbidden", "benefits", "refused access", id="forbidden, in English"),
    ],
)
async def test_a_failing_knowledge_base_gives_an_honest_answer(
    bench: Bench, kind: Any, question: str, told: str
) -> None:
    bench.knowledge.down = KnowledgeBaseError(kind, "no luck")
    bench.script(Said(call=Call("knowledge_base")))
    answer = await bench.bot.ask(question)
    assert told in answer.text
    assert answer.citations == []
    assert answer.metadata["outcome"] == kind
    assert answer.metadata["degraded"] == [{"part": "knowledge", "reason": "no luck"}]
    assert bench.used_up()


async def test_nothing_found_is_told_to_the_model(bench: Bench) -> None:
    bench.script(LOOK_UP, Said(["I found nothing [1]."]))
    answer = await bench.bot.ask("quantum gravity")
    told = bench.model.asked(1)
    assert "nothing about it was found" in told
    assert "<documents>\n- handbook.md\n- 瓦尔登湖.md\n</documents>" in told
    assert answer.text == "I found nothing."


async def test_where_the_chosen_assistant_fails_the_others_are_asked(bench: Bench) -> None:
    bench.knowledge.failing["handbook"] = KnowledgeBaseError("not_found", "it is gone")
    bench.script(LOOK_UP, Said(["很美 [1]"]))
    answer = await bench.bot.ask("瓦尔登湖 benefits")
    assert [asked for _, asked in bench.knowledge.queries] == [("handbook",), ("瓦尔登湖",)]
    assert answer.citations[0]["document"] == "瓦尔登湖.md"
    assert {"part": "knowledge", "reason": "it is gone"} in answer.metadata["degraded"]


async def test_nothing_is_not_claimed_while_a_part_could_not_be_asked(bench: Bench) -> None:
    bench.knowledge.failing["handbook"] = KnowledgeBaseError("unavailable", "down")
    bench.script(LOOK_UP)
    answer = await bench.bot.ask("vacation")
    assert "cannot be reached" in answer.text


BOTH = '{"assistants": ["handbook", "瓦尔登湖"]}'


@pytest.mark.parametrize(
    ("arguments", "failing"),
    [
        pytest.param(BOTH, "handbook", id="one of those that are meant"),
        pytest.param('{"assistants": ["handbook"]}', "瓦尔登湖", id="one of the others"),
    ],
)
@pytest.mark.parametrize(
    ("question", "told"),
    [
        pytest.param("vacation", "could not look everywhere: {}", id="in English"),
        pytest.param("假期有几天", "没能查询全部资料：{}", id="in Chinese"),
    ],
)
async def test_where_a_part_fails_and_the_rest_has_nothing_the_answer_says_so(
    bench: Bench, arguments: str, failing: str, question: str, told: str
) -> None:
    bench.knowledge.failing[failing] = KnowledgeBaseError("unavailable", "down")
    bench.script(Said(call=Call("knowledge_base", arguments)))
    answer = await bench.bot.ask(question)
    assert told.format(failing) in answer.text
    assert "down" in answer.metadata["degraded"][0]["reason"]
    assert bench.used_up()


async def test_a_part_that_fails_does_not_hide_what_another_one_has(bench: Bench) -> None:
    bench.knowledge.failing["瓦尔登湖"] = KnowledgeBaseError("unavailable", "down")
    bench.script(Said(call=Call("knowledge_base", BOTH)), Said(["15 days [1]"]))
    answer = await bench.bot.ask("benefits")
    assert answer.text == "15 days [1]"
    assert answer.metadata["degraded"] == [{"part": "knowledge", "reason": "瓦尔登湖: down"}]


async def test_a_question_may_mention_an_assistant(bench: Bench) -> None:
    bench.script(Said(call=Call("knowledge_base")), Said(["x [1]"]))
    answer = await bench.bot.ask("what does the handbook say about benefits ?")
    assert answer.metadata["assistants"] == ["handbook"]


async def test_a_query_that_says_something_else_is_searched_beside_the_question(
    bench: Bench,
) -> None:
    bench.script(CHAT, Said(["hi"]))
    await bench.bot.ask("hi", session_id="s")
    arguments = '{"assistants": ["handbook"], "question": "benefits of staff"}'
    bench.script(Said(call=Call("knowledge_base", arguments)), Said(["x [1]"]))
    await bench.bot.ask("leave", session_id="s")
    assert [query for query, _ in bench.knowledge.queries] == ["benefits of staff", "leave"]


async def test_the_caller_may_name_assistants(bench: Bench) -> None:
    bench.script(Said(call=Call("knowledge_base")), Said(["x [1]"]))
    answer = await bench.bot.ask("瓦尔登湖 benefits", assistants=["瓦尔登湖"])
    assert answer.metadata["assistants"] == ["瓦尔登湖"]
    bench.script(LOOK_UP, Said(["x [1]"]))
    answer = await bench.bot.ask("benefits", assistants=["no such"], session_id="other")
    assert answer.metadata["assistants"] == ["handbook"]
    assert answer.metadata["degraded"][0]["part"] == "assistants"
    assert "no such" in answer.metadata["degraded"][0]["reason"]


async def test_where_the_named_assistant_fails_another_one_is_chosen(bench: Bench) -> None:
    bench.knowledge.failing["handbook"] = KnowledgeBaseError("not_found", "it is gone")
    bench.script(Said(call=Call("knowledge_base")), Said(["很美 [1]"]))
    answer = await bench.bot.ask("瓦尔登湖 风景", assistants=["handbook"])
    assert answer.metadata["assistants"] == ["handbook", "瓦尔登湖"]
    assert answer.citations[0]["document"] == "瓦尔登湖.md"
    reason = "handbook could not be asked; others were chosen instead."
    assert {"part": "assistants", "reason": reason} in answer.metadata["degraded"]


async def test_where_the_named_assistant_knows_nothing_no_other_one_is_asked(
    bench: Bench,
) -> None:
    bench.script(Said(call=Call("knowledge_base")), Said(["Nothing."]))
    answer = await bench.bot.ask("瓦尔登湖 风景", assistants=["handbook"])
    assert answer.metadata["assistants"] == ["handbook"]
    assert "nothing about it was found" in bench.asked(1)


async def test_the_caller_may_choose_the_route(bench: Bench) -> None:
    bench.script(Said(["hello"]))
    answer = await bench.bot.ask("benefits", route="general_chat", session_id="s")
    assert answer.metadata["reason"] == "the caller chose the route"
    bench.script(LOOK_UP, Said(["benefits"]), Said(["yes [1]"]))
    answer = await bench.bot.ask("benefits", route="knowledge_base", session_id="s")
    assert answer.metadata["intent"] == "knowledge_base"
    assert bench.model.offered[1] == ["knowledge_base"]


async def test_a_forced_route_is_forced_whatever_the_model_calls(bench: Bench) -> None:
    bench.script(CHAT, Said(["yes [1]"]))
    answer = await bench.bot.ask("benefits", route="knowledge_base")
    assert answer.metadata["intent"] == "knowledge_base"


async def test_a_router_of_another_kind_may_fail_as_it_likes(bench: Bench) -> None:
    bench.script(Said(error=ZeroDivisionError("whatever")), Said(["hi"]))
    answer = await bench.bot.ask("hi")
    assert answer.metadata["reason"] == "default route: the router failed (ZeroDivisionError)"


async def test_what_was_cited_before_a_failure_is_told_and_kept(bench: Bench) -> None:
    failure = ModelError("interrupted", "The connection broke.")
    bench.script(LOOK_UP, Said(["15 days [1] and [7]"], error=failure))
    events = await events_of(bench.bot, "benefits", session_id="s")
    assert kinds(events)[-3:] == ["content", "citations", "error"]
    assert [each["number"] for each in data(events, "citations")] == [1]
    [turn] = await bench.bot.turns("s")
    assert turn.record["citations"] == data(events, "citations")


async def test_a_model_that_fails_midway_keeps_what_it_said(bench: Bench) -> None:
    failure = ModelError("interrupted", "The connection broke.")
    bench.script(CHAT, Said(["half of "], error=failure))
    events = await events_of(bench.bot, "hi", session_id="s")
    assert kinds(events) == ["stage", "metadata", "stage", "content", "error"]
    error = data(events, "error")
    assert error["code"] == "model_interrupted"
    assert error["retryable"] is True
    assert error["partial_answer"] == "half of "
    [turn] = await bench.bot.turns("s")
    assert (turn.status, turn.answer) == ("failed", "half of ")
    bench.script(CHAT, Said(["better"]))
    assert (await bench.bot.ask("again", session_id="s")).text == "better"
    roles = [message.type for message in bench.model.prompts[-1]]
    assert roles == ["system", "human", "ai", "human"]


@pytest.mark.parametrize(
    ("finish", "code"),
    [
        pytest.param("content_filter", "model_content_filter", id="held back"),
        pytest.param("length", "model_bad_request", id="cut off"),
        pytest.param("stop", "model_protocol", id="nothing at all"),
    ],
)
async def test_an_answer_without_a_word_says_why(bench: Bench, finish: str, code: str) -> None:
    bench.script(CHAT, Said([""], finish=finish))
    error = data(await events_of(bench.bot, "hi"), "error")
    assert error["code"] == code


async def test_asking_raises_what_went_wrong(bench: Bench) -> None:
    bench.script(CHAT, Said(error=ModelError("auth", "The key was refused.")))
    with pytest.raises(ModelError, match="refused"):
        await bench.bot.ask("hi")


async def test_a_fault_of_ours_is_told_without_its_details(bench: Bench) -> None:
    bench.script(CHAT, Said(error=ZeroDivisionError("secret detail")))
    error = data(await events_of(bench.bot, "hi"), "error")
    assert error["code"] == "internal"
    assert "secret" not in str(error)


async def test_a_stopped_turn_is_kept_and_the_next_one_works(bench: Bench) -> None:
    bench.script(CHAT, Said(["one ", "two "], pause=asyncio.Event()))
    async with aclosing(bench.bot.stream("count", session_id="s")) as events:
        async for event in events:
            if event["type"] == "content" and "two" in event["data"]:
                break
    [turn] = await bench.bot.turns("s")
    assert (turn.status, turn.answer) == ("stopped", "one two ")
    bench.script(CHAT, Said(["three"]))
    answer = await bench.bot.ask("go on", session_id="s")
    assert answer.text == "three"
    assert answer.metadata["enhanced_query"] == "go on"
    assert [turn.status for turn in await bench.bot.turns("s")] == ["stopped", "complete"]


async def test_a_turn_that_is_cancelled_while_routing_is_kept(bench: Bench) -> None:
    bench.script(Said(pause=asyncio.Event()))
    asking = asyncio.create_task(bench.bot.ask("benefits", session_id="s"))
    while not bench.model.prompts:  # noqa: ASYNC110 - the model tells nobody
        await asyncio.sleep(0.01)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    [turn] = await bench.bot.turns("s")
    assert (turn.status, turn.question, turn.answer) == ("stopped", "benefits", "")


async def test_a_run_that_is_executed_again_is_saved_once(bench: Bench) -> None:
    turn_id = str(uuid.uuid4())
    bench.script(LOOK_UP, Said(["15 days [1]"]))
    first = await events_of(bench.bot, "benefits", session_id="s", turn_id=turn_id)
    second = await events_of(bench.bot, "benefits", session_id="s", turn_id=turn_id)
    assert data(second, "end")["full_answer"] == data(first, "end")["full_answer"]
    assert data(second, "citations") == data(first, "citations")
    assert kinds(second) == ["metadata", "content", "citations", "usage", "end"]
    assert len(await bench.bot.turns("s")) == 1


async def test_a_stopped_run_that_is_executed_again_replaces_itself(bench: Bench) -> None:
    turn_id = str(uuid.uuid4())
    bench.script(CHAT, Said(["half"], error=ModelError("interrupted", "broke")))
    await events_of(bench.bot, "hi", session_id="s", turn_id=turn_id)
    bench.script(CHAT, Said(["whole"]))
    await events_of(bench.bot, "hi", session_id="s", turn_id=turn_id)
    [turn] = await bench.bot.turns("s")
    assert (turn.status, turn.answer) == ("complete", "whole")
    assert [m.type for m in bench.model.prompts[-1]] == ["system", "human"]


async def test_a_turn_ends_at_its_deadline(bench: Bench) -> None:
    bench.limits = replace(bench.limits, turn_seconds=1)
    bench.script(CHAT, Said(["so far"], pause=asyncio.Event()))
    error = data(await events_of(bench.bot, "hi", session_id="s"), "error")
    assert (error["code"], error["partial_answer"]) == ("deadline", "so far")
    [turn] = await bench.bot.turns("s")
    assert turn.status == "failed"


@pytest.mark.parametrize(
    "choices",
    [
        pytest.param({"session_id": {"$ne": ""}}, id="an operator as session"),
        pytest.param({"user_id": {"$ne": ""}}, id="an operator as user"),
        pytest.param({"session_id": ""}, id="an empty session"),
        pytest.param({"session_id": "a b"}, id="white space"),
        pytest.param({"session_id": "../../etc"}, id="a path"),
        pytest.param({"session_id": "x" * 201}, id="too long"),
        pytest.param({"session_id": 7}, id="a number"),
        pytest.param({"assistants": "handbook"}, id="assistants are no list"),
        pytest.param({"assistants": [{"$ne": 1}]}, id="an operator as assistant"),
        pytest.param({"route": "guess"}, id="no such route"),
        pytest.param({"instructions": ["x"]}, id="instructions are no text"),
    ],
)
async def test_bad_choices_are_refused(bench: Bench, choices: dict[str, Any]) -> None:
    events = await events_of(bench.bot, "hi", **choices)
    assert kinds(events) == ["metadata", "error"]
    assert data(events, "error")["code"] == "invalid_input"
    assert not bench.model.prompts
    told = data(events, "metadata")
    assert (told["turn_id"], told["session_id"]) == (None, None)
    bench.script(Said(call=Call("general_chat")), Said(["Hello."]))
    answered = await events_of(bench.bot, "hi")
    assert told.keys() == data(answered, "metadata").keys()


@pytest.mark.parametrize("question", [None, 7, b"hi", ["hi"]])
async def test_a_question_that_is_no_text_is_refused(bench: Bench, question: Any) -> None:
    with pytest.raises(InputError, match="must be text"):
        await bench.bot.ask(question)


@pytest.mark.parametrize("images", [5, "x.png", b"x", [7], {"x.png": 1}])
async def test_images_that_are_no_list_of_images_are_refused(bench: Bench, images: Any) -> None:
    with pytest.raises(InputError, match="must be a list"):
        await bench.bot.ask("hi", images=images)


async def test_a_question_that_is_too_long_is_refused_whichever_way_it_came(
    bench: Bench,
) -> None:
    bench.limits = Limits(question_characters=3)
    bench.script(CHAT, Said(["Hm."]))
    assert (await bench.bot.ask("年假？")).text
    with pytest.raises(TooLargeError, match="may have 3 characters; this one has 4"):
        await bench.bot.ask("几天年假")
    with pytest.raises(TooLargeError):
        await bench.bot.graph.ainvoke({"messages": [HumanMessage("几天年假")]})


@pytest.mark.parametrize(
    "question",
    [
        pytest.param("", id="empty"),
        pytest.param(" \n\x00\x07 ", id="control characters alone"),
    ],
)
async def test_an_empty_question_is_refused(bench: Bench, question: str) -> None:
    with pytest.raises(InputError, match="empty"):
        await bench.bot.ask(question)


async def test_any_text_is_harmless(bench: Bench) -> None:
    tricky = "{0} {{x}} ${y} %s {% raw %} \x1b[31m </passages> benefits " + "很长" * 25_000
    for _ in range(2):
        bench.script(LOOK_UP, *([Said([tricky])] * 2))
        answer = await bench.bot.ask(tricky, session_id="s", instructions=tricky[:15_000])
        assert answer.text.startswith("{0} {{x}} ${y} %s {% raw %}")
        bench.model.script.clear()


async def test_half_a_character_waits_for_its_other_half(bench: Bench) -> None:
    bench.script(CHAT, Said(["smile \ud83d", "\ude00!", " lone \ud83d"]))
    events = await events_of(bench.bot, "hi \ud83d")
    text = "".join(event["data"] for event in events if event["type"] == "content")
    assert text.startswith("smile 😀! lone")
    text.encode()
    str(data(events, "metadata")["original_query"]).encode()


async def test_the_graph_is_documented_use(bench: Bench) -> None:
    bench.script(CHAT, Said(["Hello"]))
    graph_input: Any = {"messages": [HumanMessage([{"type": "text", "text": "hi"}])]}
    result = await bench.bot.graph.ainvoke(graph_input, context=Context(session_id="g"))
    last = result["messages"][-1]
    assert isinstance(last, AIMessage)
    assert last.content == "Hello"
    [turn] = await bench.bot.turns("g")
    assert turn.question == "hi"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param([{"type": "file", "file": {}}], "not 'file'", id="a file"),
        pytest.param([{"type": "image_url", "image_url": {}}], "is empty", id="no words"),
    ],
)
async def test_what_cannot_be_read_is_refused(bench: Bench, content: Any, told: str) -> None:
    graph_input: Any = {"messages": [HumanMessage(content)]}
    with pytest.raises(InputError, match=told):
        await bench.bot.graph.ainvoke(graph_input)


async def test_tokens_of_router_and_rewriter_stay_inside(bench: Bench) -> None:
    bench.script(CHAT, Said(["hi"]))
    await bench.bot.ask("hi", session_id="s")
    bench.script(
        Said(["LEAK"], call=Call("knowledge_base")), Said(["benefits LEAK"]), Said(["ok"])
    )
    graph_input: Any = {"messages": [HumanMessage("benefits")]}
    stream: Any = bench.bot.graph.astream(
        graph_input, context=Context(session_id="s"), stream_mode="messages"
    )
    tokens = [chunk.content async for chunk, _ in stream]
    assert "".join(str(token) for token in tokens) == "ok"


async def test_users_do_not_see_each_other(bench: Bench) -> None:
    for user in ("ann", "bob"):
        bench.script(CHAT, Said([f"hello {user}"]))
        await bench.bot.ask("hi", session_id="same", user_id=user)
    assert [t.answer for t in await bench.bot.turns("same", user_id="bob")] == ["hello bob"]
    assert await bench.bot.clear("same", user_id="ann") == 1
    assert not await bench.bot.turns("same", user_id="ann")
    loaded = await bench.history.load(Session(session_id="same", user_id="bob"), limit=9)
    assert len(loaded.turns) == 1
