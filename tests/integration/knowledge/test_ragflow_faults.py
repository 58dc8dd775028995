import asyncio

import pytest
from blockbuster import blockbuster_ctx

from chatbot.domain import Assistant
from chatbot.errors import KnowledgeBaseError
from tests.integration.knowledge.ragflow import opened
from tests.servers.loopback import Reply, Request
from tests.servers.ragflow import KEY, RagflowServer
from tests.servers.ragflow_faults import enveloped
from tests.stopwatch import Stopwatch

QUESTION = "年假有几天？"


async def assistants_of(server: RagflowServer) -> list[Assistant]:
    async with opened(server) as knowledge_base:
        return list(await knowledge_base.assistants())


@pytest.mark.parametrize(
    ("fault", "kind", "sentence"),
    [
        pytest.param("html 502", "unavailable", "status 502", id="proxy error page"),
        pytest.param("reset", "unavailable", "cannot be reached", id="connection reset"),
        pytest.param("no response", "unavailable", "cannot be reached", id="closed connection"),
        pytest.param("stall", "unavailable", "no answer within", id="silence"),
        pytest.param("slow drip", "unavailable", "no answer within", id="byte after byte"),
        pytest.param("cut body", "unavailable", "cannot be reached", id="cut body"),
        pytest.param("too many requests", "unavailable", "status 429", id="too many requests"),
        pytest.param(
            "database down", "unavailable", "too many connections", id="database down"
        ),
        pytest.param("embedding failed", "unavailable", "code 400", id="embedding failed"),
        pytest.param("html login page", "protocol", "RAGFLOW_BASE_URL", id="login page"),
        pytest.param("html 404", "protocol", "status 404", id="another server"),
        pytest.param("json 404", "protocol", "RAGFLOW_BASE_URL", id="another path of RAGFlow"),
        pytest.param("empty body", "protocol", "0 bytes", id="empty body"),
        pytest.param("bad json", "protocol", "not its JSON", id="broken JSON"),
        pytest.param("json list", "protocol", "not its JSON", id="a list"),
        pytest.param("no code", "protocol", "not its JSON", id="no code"),
        pytest.param("redirect", "protocol", "redirect", id="redirect"),
        pytest.param("401", "forbidden", "RAGFLOW_API_KEY", id="bad key"),
        pytest.param("401 in the body", "forbidden", "RAGFLOW_API_KEY", id="401 in the body"),
        pytest.param("401 html", "forbidden", "RAGFLOW_API_KEY", id="401 from a proxy"),
        pytest.param("403 html", "forbidden", "RAGFLOW_API_KEY", id="403 from a proxy"),
        pytest.param("no authorization", "forbidden", "no authorization", id="not ours"),
        pytest.param("unknown model", "argument", "LookupError", id="unknown model"),
        pytest.param("argument error", "argument", "invalid orderby", id="argument"),
        pytest.param("102 without message", "argument", "code 102", id="no message"),
        pytest.param("102 not found", "not_found", "not found", id="not found"),
    ],
)
async def test_a_lasting_fault_is_a_typed_error(fault: str, kind: str, sentence: str) -> None:
    with RagflowServer() as server:
        assistants = await assistants_of(server)
        server.fail("/retrieval", fault)
        seconds = 0.4 if fault in {"stall", "slow drip"} else 30
        async with opened(server, timeout_seconds=seconds) as knowledge_base:
            with pytest.raises(KnowledgeBaseError, match=sentence) as caught:
                await knowledge_base.search(QUESTION, assistants=assistants[:1], limit=5)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    "fault",
    [
        "html 502",
        "html 503",
        "reset",
        "no response",
        "cut body",
        "too many requests",
        "database down",
        "bad json",
        "401",
        "401 in the body",
    ],
)
@pytest.mark.parametrize("path", ["/retrieval", "/chats", "/datasets"])
async def test_a_fault_that_passes_is_not_noticed(fault: str, path: str) -> None:
    with RagflowServer() as server:
        server.fail(path, fault, times=1)
        async with opened(server) as knowledge_base:
            assistants = await knowledge_base.assistants()
            findings = await knowledge_base.search(QUESTION, assistants=assistants, limit=5)
    assert findings.passages[0].document == "员工手册.md"
    assert findings.failures == {}


@pytest.mark.parametrize(
    "fault",
    ["success without data", "success with null data", "success with false data"],
)
async def test_success_without_data_is_an_empty_result(fault: str) -> None:
    with RagflowServer() as server:
        assistants = await assistants_of(server)
        server.fail("/retrieval", fault)
        async with opened(server) as knowledge_base:
            findings = await knowledge_base.search(QUESTION, assistants=assistants, limit=5)
            assert (findings.passages, findings.failures) == ([], {})
        server.fail("/chats", fault)
        async with opened(server) as knowledge_base:
            assert await knowledge_base.assistants() == []


async def test_an_old_server_that_has_parsed_nothing_is_an_empty_result() -> None:
    with RagflowServer(version="0.22") as server:
        server.fail("/retrieval", "no chunk found")
        async with opened(server) as knowledge_base:
            assistants = await knowledge_base.assistants()
            findings = await knowledge_base.search(QUESTION, assistants=assistants, limit=5)
    assert (findings.passages, findings.failures) == ([], {})


@pytest.mark.parametrize(
    ("fault", "requests"),
    [
        pytest.param("argument error", 1, id="a refused argument is not sent again"),
        pytest.param("102 not found", 1, id="what is missing is not asked for again"),
        pytest.param("html 502", 3, id="an error of the server is tried three times"),
        pytest.param("401", 2, id="a refused key is tried twice"),
    ],
)
async def test_only_what_may_pass_is_sent_again(fault: str, requests: int) -> None:
    with RagflowServer() as server:
        assistants = await assistants_of(server)
        server.fail("/retrieval", fault)
        async with opened(server) as knowledge_base:
            with pytest.raises(KnowledgeBaseError):
                await knowledge_base.search(QUESTION, assistants=assistants[:1], limit=5)
        assert len(server.asked("/retrieval")) == requests


async def test_a_key_known_as_bad_is_not_tried_twice_each_time() -> None:
    with RagflowServer() as server:
        async with opened(server, key="wrong") as knowledge_base:
            assert "RAGFLOW_API_KEY" in await knowledge_base.check()
            assert len(server.asked("/chats")) == 2
            assert "RAGFLOW_API_KEY" in await knowledge_base.check()
            assert len(server.asked("/chats")) == 3


async def test_the_key_is_in_no_error() -> None:
    with RagflowServer() as server:
        server.fail("/chats", enveloped({"code": 102, "message": f"no user for {KEY} " * 90}))
        async with opened(server) as knowledge_base:
            problem = await knowledge_base.check()
    assert "no user for ***" in problem
    assert KEY not in problem
    assert len(problem) < 500


async def test_one_assistant_that_fails_is_named_and_the_others_answer() -> None:
    async def fail_for_walden(request: Request, reply: Reply) -> None:
        walden = server.chats[1].dataset_ids
        if request.json()["dataset_ids"] == walden:
            await reply.json({"code": 102, "message": "`documents` should be a list"})
        else:
            await server.retrieve(request, reply, {})

    with RagflowServer() as server:
        server.fail("/retrieval", fail_for_walden)
        async with opened(server) as knowledge_base:
            assistants = await knowledge_base.assistants()
            findings = await knowledge_base.search(QUESTION, assistants=assistants, limit=5)
    assert [passage.assistant for passage in findings.passages] == ["员工手册"]
    assert list(findings.failures) == ["瓦尔登湖"]
    assert "should be a list" in findings.failures["瓦尔登湖"]


async def test_where_a_ragflow_is_not_is_told_in_the_log_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with RagflowServer() as server:
        pass
    async with opened(server) as knowledge_base:
        with pytest.raises(KnowledgeBaseError) as caught:
            await knowledge_base.assistants()
        reason = await knowledge_base.check()
    assert "RAGFlow cannot be reached: no connection." in reason
    assert "127" not in f"{reason} {caught.value!r}"
    for told in (caught.value.in_full, caplog.text):
        assert "Cannot connect to host 127.0.0.1" in told
        assert "ssl" not in told


async def test_a_dead_ragflow_costs_later_turns_nothing() -> None:
    with RagflowServer() as server:
        async with opened(server, timeout_seconds=3) as knowledge_base:
            assistants = await knowledge_base.assistants()
            server.pause()
            with pytest.raises(KnowledgeBaseError, match="cannot be reached"):
                await knowledge_base.search(QUESTION, assistants=assistants, limit=5)
            stopwatch = Stopwatch()
            for _ in range(20):
                with pytest.raises(KnowledgeBaseError) as caught:
                    await knowledge_base.search(QUESTION, assistants=assistants, limit=5)
            assert stopwatch.seconds() < 0.2
            assert caught.value.retry_after is not None
            server.resume()
            await asyncio.sleep(1.1)  # the pause after which it is looked at again
            findings = await knowledge_base.search(QUESTION, assistants=assistants, limit=5)
            assert findings.passages


async def test_a_ragflow_that_hangs_costs_later_turns_little() -> None:
    with RagflowServer() as server:
        async with opened(server, timeout_seconds=0.5) as knowledge_base:
            assistants = await knowledge_base.assistants()
            server.fail("/", "stall")
            for allowed in (0.7, 0.35, 0.1, 0.1):
                stopwatch = Stopwatch()
                with pytest.raises(KnowledgeBaseError):
                    await knowledge_base.search(QUESTION, assistants=assistants, limit=5)
                assert stopwatch.seconds() < allowed


async def test_a_slow_assistant_does_not_hold_back_the_others() -> None:
    async def stall_for_walden(request: Request, reply: Reply) -> None:
        if request.json()["dataset_ids"] == server.chats[1].dataset_ids:
            await reply.closed_by_client()
        else:
            await server.retrieve(request, reply, {})

    with RagflowServer() as server:
        server.fail("/retrieval", stall_for_walden)
        async with opened(server, timeout_seconds=1.2) as knowledge_base:
            assistants = await knowledge_base.assistants()
            async with asyncio.timeout(1.2):  # the same limit, as the graph has it
                findings = await knowledge_base.search(QUESTION, assistants=assistants, limit=5)
            assert findings.passages[0].document == "员工手册.md"
            assert "no answer" in findings.failures["瓦尔登湖"]
            server.heal()
            again = await knowledge_base.search(QUESTION, assistants=assistants, limit=5)
            assert again.failures == {}  # one slow answer shuts nobody out


async def test_a_hundred_searches_at_once_do_not_wait_for_each_other() -> None:
    async def slow(_: Request, reply: Reply) -> None:
        await asyncio.sleep(0.3)
        await reply.json({"code": 0, "data": {"chunks": []}})

    with RagflowServer() as server:
        server.fail("/retrieval", slow)
        async with opened(server) as knowledge_base:
            assistants = (await knowledge_base.assistants())[:1]
            stopwatch = Stopwatch()
            await asyncio.gather(
                *(
                    knowledge_base.search(QUESTION, assistants=assistants, limit=5)
                    for _ in range(100)
                )
            )
            assert stopwatch.seconds() < 4  # one after the other they take 30


async def test_nothing_blocks_the_event_loop() -> None:
    with RagflowServer() as server, blockbuster_ctx():
        async with opened(server) as knowledge_base:
            assistants = await knowledge_base.assistants()
            findings = await knowledge_base.search(QUESTION, assistants=assistants, limit=5)
            assert findings.passages
            assert await knowledge_base.check() == ""


async def test_a_cancelled_search_leaves_nothing_behind() -> None:
    with RagflowServer() as server:
        async with opened(server) as knowledge_base:
            assistants = await knowledge_base.assistants()
            server.fail("/retrieval", "stall", times=3)
            search = asyncio.create_task(
                knowledge_base.search(QUESTION, assistants=assistants, limit=5)
            )
            while not server.asked("/retrieval"):  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(0.01)
            search.cancel()
            with pytest.raises(asyncio.CancelledError):
                await search
            findings = await knowledge_base.search(QUESTION, assistants=assistants, limit=5)
            assert findings.passages
        assert len(asyncio.all_tasks()) == 1
