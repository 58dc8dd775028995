import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from chatbot.bootstrap import open_ports
from chatbot.domain import Session, Turn
from chatbot.settings import MEMORY, Settings
from serving.cli.doctor.examination import CLOSING_SECONDS, examine_services, load
from serving.cli.doctor.findings import Finding
from serving.cli.doctor.surroundings import examine_head_start
from tests.integration.cli.examined import DEAD, SECONDS, examined, states, words
from tests.integration.cli.terminal import run
from tests.servers.loopback import Loopback, Reply, Request
from tests.servers.mongod import Mongod
from tests.servers.ragflow import KEY, RagflowServer, Version
from tests.servers.ragflow_knowledge import Chat, Dataset, Document
from tests.stopwatch import Stopwatch


async def test_nothing_configured_is_healthy(tmp_path: Path) -> None:
    findings = await examined(tmp_path)

    assert {each.state for each in findings} == {"ok", "off"}
    assert states(findings, "model") == {"off"}
    assert "DASHSCOPE_API_KEY" in words(findings, "model")
    assert "3 assistants" in words(findings, "knowledge")
    assert str(tmp_path) in words(findings, "history")


async def test_mongodb_is_written_and_its_expiry_found(tmp_path: Path, mongod: Mongod) -> None:
    findings = await examined(
        tmp_path, mongodb_uri=SecretStr(mongod.uri), mongodb_db="doctor", session_ttl_days=3
    )

    assert states(findings, "history") == {"ok"}
    found = words(findings, "history")
    assert re.search(r"MongoDB \d+\.\d+\.\d+ answers in", found)
    assert re.search(r"clock of MongoDB is [+-]\d\.\d s away", found)
    assert "wait on this machine for MongoDB: 0." in found
    assert "doctor.chat_history can be written and read" in found
    assert "expire 3 days after" in found


async def test_memory_in_place_of_a_folder_is_told() -> None:
    findings = await examined(Path(MEMORY))

    assert {each.state for each in findings} == {"ok", "off"}
    assert "in memory, until the process ends" in words(findings, "history")
    assert "nothing is written" in words(findings, "disk")


@pytest.mark.parametrize(
    ("version", "said"),
    [
        pytest.param("0.27", "RAGFlow has the version v0.27.0.", id="new"),
        pytest.param("0.22", "does not tell its version", id="old"),
    ],
)
async def test_ragflow_is_searched(tmp_path: Path, version: Version, said: str) -> None:
    with RagflowServer(version=version) as ragflow:
        findings = await examined(
            tmp_path, ragflow_base_url=ragflow.url, ragflow_api_key=SecretStr(KEY)
        )
        assert states(findings, "knowledge") == {"ok"}
        assert said in words(findings, "knowledge")
        assert ragflow.asked("/retrieval")


async def test_datasets_that_find_nothing_are_named(tmp_path: Path) -> None:
    chats = [
        Chat(
            name="Staff",
            datasets=[
                Dataset(name="empty"),
                Dataset(name="unparsed", documents=[Document(name="a.md", run="UNSTART")]),
                Dataset(name="good", documents=[Document(name="b.md", chunks=["Leave."])]),
            ],
        )
    ]
    with RagflowServer(chats) as ragflow:
        findings = await examined(
            tmp_path, ragflow_base_url=ragflow.url, ragflow_api_key=SecretStr(KEY)
        )
    found = words(findings, "knowledge")
    assert states(findings, "knowledge") == {"ok", "warn"}
    assert "Datasets: 3." in found
    assert "No document of the dataset unparsed is parsed" in found
    assert "chatbot ingest FILES --dataset empty" in found
    assert "good" not in found


async def test_what_waits_for_mongodb_is_counted(tmp_path: Path) -> None:
    away = Settings(
        chatbot_data_dir=tmp_path, mongodb_uri=SecretStr(f"mongodb://{DEAD}"), prompts_dir=None
    )
    async with open_ports(away) as ports:
        turn = Turn(id="t1", question="?", started_at=datetime.now(UTC))
        await ports.history.save(Session(session_id="s1"), turn)
    load(away)
    findings = await examine_services(away, seconds=SECONDS)

    assert "wait on this machine for MongoDB: 1" in words(findings, "history")
    assert states(findings, "history") == {"warn", "fail"}


@pytest.mark.parametrize("fault", ["401", "401 in the body", "401 html", "403 html"])
async def test_refused_key_is_told_however_little_time_there_is(
    tmp_path: Path, fault: str
) -> None:
    with RagflowServer() as ragflow:
        ragflow.fail("", fault, times=1)
        ragflow.fail("", "stall")
        settings = Settings(
            chatbot_data_dir=tmp_path,
            ragflow_base_url=ragflow.url,
            ragflow_api_key=SecretStr(KEY),
        )
        load(settings)
        findings = await examine_services(settings, seconds=3)
    assert states(findings, "knowledge") == {"fail"}
    assert "RAGFLOW_API_KEY" in words(findings, "knowledge")
    assert ragflow.url in words(findings, "knowledge")
    assert f"code {fault[:3]}" in words(findings, "knowledge")


async def test_wrong_key_of_ragflow_is_told(tmp_path: Path) -> None:
    with RagflowServer() as ragflow:
        findings = await examined(
            tmp_path, ragflow_base_url=ragflow.url, ragflow_api_key=SecretStr("wrong-key-here")
        )
    assert states(findings, "knowledge") == {"fail"}
    assert "RAGFLOW_API_KEY" in words(findings, "knowledge")
    assert "wrong-key-here" not in words(findings, "knowledge")


async def test_skipped_file_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "knowledge"
    folder.mkdir()
    (folder / "leave.md").write_text("# Leave\n\nTwenty days of leave.\n", encoding="utf-8")
    (folder / "scan.pdf").write_bytes(b"%PDF")
    findings = await examined(tmp_path, knowledge_dir=folder)

    assert "warn" in states(findings, "knowledge")
    assert "scan.pdf is not searched" in words(findings, "knowledge")


async def test_a_folder_that_takes_longer_to_read_is_no_failure(tmp_path: Path) -> None:
    folder = tmp_path / "knowledge"
    folder.mkdir()
    # Another process reads it, which starts in no time as short as this one.
    (folder / "page.html").write_text("<p>Twenty days of leave.</p>", encoding="utf-8")
    settings = Settings(chatbot_data_dir=tmp_path, knowledge_dir=folder)
    load(settings)
    findings = await examine_services(settings, seconds=0.01)

    assert "fail" not in states(findings, "knowledge")
    assert "still being read" in words(findings, "knowledge")
    assert "RAGFLOW" not in words(findings, "knowledge")


def test_of_many_skipped_files_all_are_in_the_json(tmp_path: Path) -> None:
    folder = tmp_path / "knowledge"
    folder.mkdir()
    (folder / "leave.md").write_text("# Leave\n\nTwenty days of leave.\n", encoding="utf-8")
    names = [f"picture{number}.md" for number in range(8)]
    for name in names:
        (folder / name).write_bytes(b"\x89PNG\0\0")
    settings = {"KNOWLEDGE_DIR": str(folder), "COLUMNS": "200"}
    shown = run(tmp_path, "doctor", settings=settings)
    report = json.loads(run(tmp_path, "doctor", "--json", settings=settings).out)

    assert sum(name in shown.out for name in names) == 5
    assert "3 more files are not searched." in shown.out
    told = " ".join(each["detail"] for each in report["findings"])
    assert all(f"{name} is not searched" in told for name in names)
    assert {frozenset(each) for each in report["findings"]} == {
        frozenset({"part", "state", "detail", "advice"})
    }


async def test_empty_knowledge_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    findings = await examined(tmp_path, knowledge_dir=tmp_path / "empty")

    assert states(findings, "knowledge") == {"fail"}
    assert "KNOWLEDGE_DIR" in words(findings, "knowledge")


@pytest.mark.parametrize(
    ("fields", "part", "said"),
    [
        pytest.param({"llm_model": "no-such"}, "model", "LLM_MODEL=no-such", id="model"),
        pytest.param(
            {"ragflow_base_url": f"http://{DEAD}"}, "knowledge", "RAGFLOW_API_KEY", id="RAGFlow"
        ),
        pytest.param(
            {"mongodb_uri": SecretStr("mongodb://x:port")},
            "history",
            "MONGODB_URI",
            id="MongoDB",
        ),
        pytest.param({"prompts_dir": Path("/no/such")}, "prompts", "PROMPTS_DIR", id="prompts"),
    ],
)
async def test_fault_of_one_part_does_not_hide_the_others(
    tmp_path: Path, fields: Mapping[str, Any], part: str, said: str
) -> None:
    findings = await examined(tmp_path, **fields)

    assert said in words(findings, part)
    assert {each.part for each in findings if each.state == "fail"} == {part}


async def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    findings = await examined(tmp_path / "file")

    assert states(findings, "disk") == {"fail"}
    assert "CHATBOT_DATA_DIR" in words(findings, "disk")


async def test_services_that_hang_are_told_in_time(tmp_path: Path) -> None:
    async def hang(_: Request, reply: Reply) -> None:
        await reply.closed_by_client()

    with Loopback(hang) as server:
        settings = Settings(
            chatbot_data_dir=tmp_path,
            mongodb_uri=SecretStr(f"mongodb://127.0.0.1:{server.port}"),
            ragflow_base_url=server.url,
            ragflow_api_key=SecretStr("key"),
            openai_base_url=server.url,
            llm_model="scripted",
        )
        load(settings)
        stopwatch = Stopwatch()
        findings = await examine_services(settings, seconds=1.0)
        seconds = stopwatch.seconds()

    failing = {each.part for each in findings if each.state == "fail"}
    assert failing == {"history", "knowledge", "model"}
    assert seconds < 1.0 + CLOSING_SECONDS + 1.0


def test_everything_down_is_told(tmp_path: Path) -> None:
    settings = {
        "MONGODB_URI": f"mongodb://user:hidden-hidden@{DEAD}",
        "RAGFLOW_BASE_URL": f"http://{DEAD}",
        "RAGFLOW_API_KEY": "ragflow-hidden-hidden-hidden",
        "OPENAI_BASE_URL": f"http://{DEAD}/v1",
        "OPENAI_API_KEY": "sk-hidden-hidden-hidden",
        "LLM_MODEL": "scripted",
    }
    result = run(tmp_path, "doctor", "--json", settings=settings)

    report = json.loads(result.out)
    failing = {each["part"] for each in report["findings"] if each["state"] == "fail"}
    assert failing == {"history", "knowledge", "model"}
    assert all(each["advice"] for each in report["findings"] if each["state"] == "fail")
    assert (result.code, result.err, report["ok"]) == (1, "", False)
    assert "hidden-hidden" not in result.out


def test_wrong_setting_is_a_failing_line(tmp_path: Path) -> None:
    result = run(tmp_path, "doctor", settings={"PASSAGES": "many"})

    assert result.code == 1
    assert "PASSAGES" in result.out
    assert "FAILS" in result.out


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        pytest.param({}, "", id="all is on"),
        pytest.param({"route_early": False, "head_start": False}, "", id="switched off"),
        pytest.param({"route_early": False}, "with ROUTE_EARLY=false.", id="late route"),
        pytest.param(
            {"route_early": False, "prefetch": 0}, "ROUTE_EARLY=false and PREFETCH=0", id="both"
        ),
        pytest.param(
            {"ragflow_mode": "answer", "ragflow_base_url": f"http://{DEAD}"},
            "with RAGFLOW_MODE=answer",
            id="assistants answer",
        ),
    ],
)
async def test_a_head_start_that_cannot_be_is_told(fields: dict[str, Any], said: str) -> None:
    found: list[Finding] = []
    await examine_head_start(Settings(**fields), found.append)
    assert said in words(found, "head start")
    assert bool(found) == bool(said)


def test_misspelled_setting_is_a_warning(tmp_path: Path) -> None:
    result = run(tmp_path, "doctor", settings={"RAGFLOW_APIKEY": "hidden-hidden"})

    assert result.code == 0
    assert "Did you mean RAGFLOW_API_KEY?" in result.out
    assert "RAGFLOW_APIKEY (from the environment) is no setting" in result.err
    assert "hidden-hidden" not in result.out + result.err
