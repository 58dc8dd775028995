from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from chatbot.errors import InputError
from chatbot.settings import Settings
from serving.cli.ingest import files_of, ingest
from serving.cli.knowledge import search
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
    assert capsys.readouterr() == ("2 of 2 files can be searched.\n", "")

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
    assert capsys.readouterr().out == "2 of 2 files can be searched, 1 of them unchanged.\n"
    assert "forty" in (tmp_path / "knowledge" / "hr" / "leave.md").read_text(encoding="utf-8")
    assert len(list((tmp_path / "knowledge" / "hr").iterdir())) == 2


def test_files_that_cannot_be_read_are_named(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (source / "scan.pdf").write_bytes(b"%PDF")
    (source / "binary.txt").write_bytes(b"\x00\x01\x02\xff" * 50)

    assert not ingest(embedded(tmp_path), [source], dataset="hr", assistant=None)
    shown = capsys.readouterr()
    assert "2 of 4 files" in shown.out
    assert "scan.pdf: Only Markdown and text files are read" in shown.err
    assert "binary.txt: It cannot be searched" in shown.err


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


def test_missing_and_ambiguous_files(tmp_path: Path, source: Path) -> None:
    with pytest.raises(InputError, match="There is no file"):
        files_of([source / "nothing.md"])
    (source / "deep" / "leave.md").write_text("other", encoding="utf-8")
    with pytest.raises(InputError, match="same name"):
        files_of([source])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no files"):
        files_of([tmp_path / "empty"])


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


def test_embedded_knowledge_has_no_assistant_to_name(tmp_path: Path, source: Path) -> None:
    with pytest.raises(InputError, match="--assistant"):
        ingest(embedded(tmp_path), [source], dataset="hr", assistant="Helper")
