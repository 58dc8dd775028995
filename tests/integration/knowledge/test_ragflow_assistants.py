import asyncio

import pytest

from chatbot.errors import ConfigurationError
from chatbot.knowledge.ragflow import open_ragflow
from tests.integration.knowledge.ragflow import dataset, opened
from tests.servers.loopback import Reply, Request
from tests.servers.ragflow import RagflowServer, Version
from tests.servers.ragflow_knowledge import Chat

VERSIONS: list[Version] = ["0.22", "0.27"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_assistants_are_described_by_themselves_or_by_their_datasets(
    version: Version,
) -> None:
    chats = [
        Chat(name="A", description="Knows A.", datasets=[dataset("a", "text")]),
        Chat(name="B", datasets=[dataset("b", "text", about="All of B"), dataset("c", "text")]),
        Chat(name="C", description="", datasets=[dataset("d", "text", about="D " * 999)]),
        Chat(name="D"),
    ]
    with RagflowServer(chats, version=version) as server:
        async with opened(server) as knowledge_base:
            assistants = await knowledge_base.assistants()
    assert [each.name for each in assistants] == ["A", "B", "C", "D"]
    assert [each.description for each in assistants[:2]] == ["Knows A.", "b: All of B; c"]
    assert len(assistants[2].description) <= 400
    assert assistants[3].description == ""


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 250])
async def test_all_pages_of_assistants_are_listed(version: Version, count: int) -> None:
    chats = [Chat(name=f"助手 {number}") for number in range(count)]
    with RagflowServer(chats, version=version) as server:
        async with opened(server) as knowledge_base:
            assistants = await knowledge_base.assistants()
    assert [each.name for each in assistants] == [chat.name for chat in chats]


async def test_a_server_that_repeats_one_page_is_not_asked_for_ever() -> None:
    rows = [{"id": f"{number}", "name": "a"} for number in range(100)]

    async def same_page(_: Request, reply: Reply) -> None:
        await reply.json({"code": 0, "data": rows})

    with RagflowServer() as server:
        server.fail("/chats", same_page)
        async with opened(server) as knowledge_base:
            assert len(await knowledge_base.assistants()) == 100
        assert len(server.asked("/chats")) == 2


async def test_the_list_of_assistants_is_kept_and_renewed_in_the_background() -> None:
    with RagflowServer() as server:
        async with opened(server, list_seconds=1) as knowledge_base:
            await asyncio.gather(*(knowledge_base.assistants() for _ in range(20)))
            assert len(server.asked("/chats")) == 1
            server.chats.append(Chat(name="New"))
            assert len(await knowledge_base.assistants()) == 3
            await asyncio.sleep(1.05)
            assert len(await knowledge_base.assistants()) == 3  # at once, and asks again
            async with asyncio.timeout(20):
                while len(await knowledge_base.assistants()) < 4:  # noqa: ASYNC110 - nobody is told
                    await asyncio.sleep(0.01)
            assert len(server.asked("/chats")) == 2


async def test_the_last_list_serves_while_ragflow_is_away() -> None:
    with RagflowServer() as server:
        async with opened(server, list_seconds=0.01) as knowledge_base:
            before = await knowledge_base.assistants()
            server.pause()
            await asyncio.sleep(0.15)  # much older than it may be
            assert await knowledge_base.assistants() == before


async def test_check_says_nothing_when_all_is_well() -> None:
    with RagflowServer() as server:
        async with opened(server) as knowledge_base:
            assert await knowledge_base.check() == ""


@pytest.mark.parametrize("suffix", ["", "/", "//", "/api", "/api/v1", "/api/v1/"])
async def test_an_address_may_name_the_api(suffix: str) -> None:
    with RagflowServer() as server:
        async with open_ragflow(f"{server.url}{suffix}", f" {server.key}\n") as ragflow:
            assert await ragflow.passages.check() == ""
        assert server.requests[0].path == "/api/v1/chats"


@pytest.mark.parametrize("key", ["a\nb: c", "密钥", "\x00"])
async def test_what_cannot_be_a_key_is_refused(key: str) -> None:
    with pytest.raises(ConfigurationError, match="RAGFLOW_API_KEY") as caught:
        async with open_ragflow("http://127.0.0.1:1", key):
            pass
    assert key not in str(caught.value)
