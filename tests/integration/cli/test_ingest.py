import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from chatbot.errors import InputError, KnowledgeBaseError
from chatbot.settings import Settings
from serving.cli.ingest import files_of, ingest
from serving.cli.knowledge import search
from tests.integration.cli.terminal import environment
from tests.servers.ragflow import KEY, RagflowServer

LEAVE = "# Leave\n\nEverybody gets thirty days of leave in a year.\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "deep").mkdir(parents=True)
    (folder / "leave.md").write_text(LEAVE, encoding="utf-8")
    (folder / "deep" / "食堂.txt").write_text("食堂每天十一点半开门。\n", encoding="utf-8")
    return folder


def embedded(tmp_path: Path) -> Settings:
    return Settings(chatbot_data_dir=tmp_path / "data", knowledge_dir=tmp_path / "knowledge")


def test_files_are_searched_once_they_are_in(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = embedded(tmp_path)
    assert ingest(settings, [source], dataset="人事", assistant=None)
    lines = ["leave.md: done", "食堂.txt: done", "2 of 2 files can be searched."]
    shown = capsys.readouterr()
    assert (sorted(shown.out.splitlines()), shown.err) == (sorted(lines), "")

    search(settings, "食堂什么时候开门？", ["人事"], 3, as_json=False)
    assert "十一点半" in capsys.readouterr().out


def test_unchanged_and_changed_files(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = embedded(tmp_path)
    ingest(settings, [source], dataset="hr", assistant=None)
    (source / "leave.md").write_text(LEAVE.replace("thirty", "forty"), encoding="utf-8")
    capsys.readouterr()

    assert ingest(settings, [source], dataset="hr", assistant=None)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "2 of 2 files can be searched, 1 of them unchanged."
    assert {"leave.md: done", "食堂.txt: unchanged"} <= set(lines)
    assert "forty" in (tmp_path / "knowledge" / "hr" / "leave.md").read_text(encoding="utf-8")
    assert len(list((tmp_path / "knowledge" / "hr").iterdir())) == 2


def test_files_that_cannot_be_read_are_named(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (source / "scan.pdf").write_bytes(b"%PDF")
    (source / "binary.txt").write_bytes(b"\x00\x01\x02\xff" * 50)
    (source / "empty.md").touch()
    (source / "slides.pptx").write_bytes(b"PK")
    (source / "huge.md").touch()
    os.truncate(source / "huge.md", 9 * 2**20)

    assert not ingest(embedded(tmp_path), [source], dataset="hr", assistant=None)
    shown = capsys.readouterr()
    assert "2 of 7 files" in shown.out
    assert "scan.pdf: It cannot be searched: it is damaged" in shown.err
    assert "binary.txt: It cannot be searched: it is not a text file" in shown.err
    assert "empty.md: It is not taken: the file is empty." in shown.err
    assert "slides.pptx: It is not taken: only Markdown, text, PDF" in shown.err
    assert "huge.md: It is not taken: the file is larger than 8 MiB." in shown.err


def test_a_folder_gives_its_name_to_the_dataset(tmp_path: Path, source: Path) -> None:
    settings = embedded(tmp_path)
    assert ingest(settings, [source], dataset=None, assistant=None)
    assert (tmp_path / "knowledge" / "source" / "leave.md").is_file()

    with pytest.raises(InputError, match="--dataset NAME"):
        ingest(settings, [source / "leave.md"], dataset=None, assistant=None)


def test_an_interruption_costs_only_what_was_not_read_yet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "many"
    source.mkdir()
    for number in range(300):
        (source / f"{number}.md").write_text(f"# Note {number}\n\n" + "一句话。" * 400)
    arguments = ["ingest", str(source)]
    settings = {"KNOWLEDGE_DIR": str(tmp_path / "knowledge"), "RAGFLOW_BASE_URL": ""}
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "serving.cli", *arguments],
        env=environment(tmp_path / "data", settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert process.stdout is not None
    assert process.stdout.readline().endswith(": done\n")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in errors
    saved = json.loads(next((tmp_path / "data").glob("*/*/*/manifest.json")).read_text())
    assert 0 < len(saved["documents"]) < 300

    assert ingest(embedded(tmp_path), [source], dataset=None, assistant=None)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("300 of 300 files can be searched")


@pytest.mark.parametrize(
    "dataset",
    [
        pytest.param("../outside", id="a path"),
        pytest.param("/etc", id="an absolute path"),
        pytest.param("..", id="the folder above"),
        pytest.param(".hidden", id="a hidden folder"),
        pytest.param("", id="nothing"),
        pytest.param("长" * 100, id="longer than a name may be"),
        pytest.param("a\nb", id="two lines"),
    ],
)
def test_dataset_that_is_no_name_of_a_folder(
    tmp_path: Path, source: Path, dataset: str
) -> None:
    with pytest.raises(InputError, match="name of a folder"):
        ingest(embedded(tmp_path), [source], dataset=dataset, assistant=None)
    assert {each.name for each in tmp_path.iterdir()} <= {"source", "data"}


def test_missing_files(tmp_path: Path, source: Path) -> None:
    with pytest.raises(InputError, match="There is no file"):
        files_of([source / "nothing.md"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no files"):
        files_of([tmp_path / "empty"])


def test_files_of_the_same_name_are_told_apart(tmp_path: Path, source: Path) -> None:
    (source / "deep" / "leave.md").write_text("# Other\n\nOther leave.", encoding="utf-8")

    assert ingest(embedded(tmp_path), [source], dataset="hr", assistant=None)
    there = {each.name for each in (tmp_path / "knowledge" / "hr").iterdir()}
    assert there == {"source - leave.md", "deep - leave.md", "食堂.txt"}


def ragflow_settings(tmp_path: Path, server: RagflowServer) -> Settings:
    fields: Mapping[str, Any] = {
        "ragflow_base_url": server.url,
        "ragflow_api_key": SecretStr(KEY),
        "chatbot_data_dir": tmp_path / "data",
    }
    return Settings.model_validate(fields)


def test_files_reach_ragflow_and_its_assistant(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with RagflowServer() as server:
        settings = ragflow_settings(tmp_path, server)
        assert ingest(settings, [source], dataset="New", assistant="Helper")

        assert "New" in {dataset.name for dataset in server.datasets.values()}
        assert "Helper" in {chat.name for chat in server.chats}
    shown = capsys.readouterr()
    assert "leave.md: done" in shown.out
    assert "2 of 2 files can be searched." in shown.out
    assert shown.err == ""


def test_an_assistant_that_ragflow_refuses_hides_no_failure(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (source / "odd.zzz").write_text("odd", encoding="utf-8")
    with RagflowServer() as server:
        server.fail("/chats", "no authorization")
        with pytest.raises(KnowledgeBaseError, match="no authorization"):
            ingest(
                ragflow_settings(tmp_path, server), [source], dataset="New", assistant="Helper"
            )
    shown = capsys.readouterr()
    assert "odd.zzz: This type of file has not been supported yet!" in shown.err
    assert "2 of 3 files can be searched." in shown.out


def test_embedded_knowledge_has_no_assistant_to_name(tmp_path: Path, source: Path) -> None:
    with pytest.raises(InputError, match="--assistant"):
        ingest(embedded(tmp_path), [source], dataset="hr", assistant="Helper")
