"""What is read from a folder, and what is left out and why."""

import os
from pathlib import Path

import pytest

from chatbot.knowledge.local.folder import LARGEST, LARGEST_CONVERTED, File, list_folder
from chatbot.knowledge.local.reading import UnreadableError, decode, read_bytes, read_profile


def listed(folder: Path) -> list[str]:
    return [file.name for file in list_folder(folder).files]


def test_documents_are_found_at_any_depth(tmp_path: Path) -> None:
    for name in ("a.md", "x/b.txt", "x/y/z/c.MARKDOWN", "中文/文档.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text", encoding="utf-8")

    assert listed(tmp_path) == ["a.md", "x/b.txt", "x/y/z/c.MARKDOWN", "中文/文档.md"]
    assert {file.assistant for file in list_folder(tmp_path).files} == {".", "x", "中文"}


def test_what_cannot_be_a_document_is_left_out_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "empty.md").touch()
    (tmp_path / "slides.pptx").write_bytes(b"PK")
    (tmp_path / "large.pdf").write_bytes(b"%PDF")
    os.truncate(tmp_path / "large.pdf", LARGEST_CONVERTED + 1)
    (tmp_path / ".hidden.md").write_text("text")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "notes.md").write_text("text")
    (tmp_path / "~$draft.md").write_text("text")
    os.mkfifo(tmp_path / "pipe.md")
    with (tmp_path / "huge.txt").open("wb") as huge:
        huge.truncate(LARGEST + 1)

    listing = list_folder(tmp_path)

    assert listing.files == ()
    assert listing.skipped == {
        "empty.md": "the file is empty",
        "huge.txt": "the file is larger than 8 MiB",
        "pipe.md": "it is neither a file nor a folder",
        "large.pdf": "the file is larger than 64 MiB",
        "slides.pptx": (
            "only Markdown, text, PDF, Word (.docx), Excel (.xlsx) and HTML files are read"
        ),
    }


def test_links_that_leave_the_folder_are_left_out(tmp_path: Path) -> None:
    secret = tmp_path / "secret.md"
    secret.write_text("secret")
    folder = tmp_path / "knowledge"
    folder.mkdir()
    (folder / "inside.md").write_text("text")
    (folder / "out.md").symlink_to(secret)
    (folder / "out").symlink_to(tmp_path)
    (folder / "broken.md").symlink_to(folder / "nowhere.md")
    (folder / "loop.md").symlink_to(folder / "loop.md")
    (folder / "again.md").symlink_to(folder / "inside.md")
    (folder / "circle").symlink_to(folder)

    listing = list_folder(folder)

    assert [file.name for file in listing.files] == ["again.md", "inside.md"]
    assert listing.skipped["out.md"] == "the link leads out of the folder"
    assert listing.skipped["out"] == "the link leads out of the folder"
    assert listing.skipped["circle"] == "links to folders are not followed"
    assert {"broken.md", "loop.md"} <= set(listing.skipped)


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list_folder(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param("瓦尔登湖".encode(), "瓦尔登湖", id="UTF-8"),
        pytest.param("瓦尔登湖".encode("utf-8-sig"), "瓦尔登湖", id="UTF-8 with a mark"),
        pytest.param("瓦尔登湖".encode("gb18030"), "瓦尔登湖", id="GB18030"),
        pytest.param("瓦尔登湖".encode("utf-16"), "瓦尔登湖", id="UTF-16 with a mark"),
        pytest.param(
            "naïve café, a long line".encode("cp1252"),
            "naïve café, a long line",
            id="Western Windows",
        ),
        pytest.param(b"a\x1bb" + b"c" * 200, "ab" + "c" * 200, id="a stray control character"),
    ],
)
def test_encodings(content: bytes, expected: str) -> None:
    assert decode(content) == expected


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"\x89PNG\r\n\x00\x00\x00", "not a text file", id="picture"),
        pytest.param(bytes(range(1, 32)) * 20, "not text", id="control characters"),
        pytest.param(b"\xff\xff\xff\xff\xff\xff", "not text", id="no encoding fits"),
        pytest.param(b" \n\n ", "empty", id="white space"),
        pytest.param("\ufeff".encode(), "empty", id="only a mark"),
    ],
)
def test_what_is_no_text_is_refused(content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        decode(content)


def profile(folder: Path, content: bytes) -> tuple[str, str]:
    (folder / "assistant.toml").write_bytes(content)
    return read_profile(folder, File("assistant.toml", len(content), 0))


def test_a_profile_gives_name_and_description(tmp_path: Path) -> None:
    content = 'name = "手册"\ndescription = """\nRules\nof work."""\n'

    assert profile(tmp_path, content.encode()) == ("手册", "Rules of work.")
    assert profile(tmp_path, b"") == ("", "")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"name = ", "not a TOML file", id="broken"),
        pytest.param(b"\xff\xfe", "not a TOML file", id="no text"),
        pytest.param(b"name = 3", "must be strings", id="a number as name"),
        pytest.param(b"#" * 70_000, "too large", id="huge"),
    ],
)
def test_a_wrong_profile_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    with pytest.raises(UnreadableError, match=reason):
        profile(tmp_path, content)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        pytest.param("out.md", "does not lie in the folder", id="a link out of the folder"),
        pytest.param("out/secret.md", "does not lie in the folder", id="a folder outside"),
        pytest.param("../secret.md", "does not lie in the folder", id="the folder above"),
        pytest.param("loop.md", "cannot be opened", id="a link to itself"),
        pytest.param("gone.md", "cannot be opened", id="a file that is gone"),
        pytest.param("a\0b", "cannot be opened", id="a null character"),
        pytest.param("sub", "cannot be opened", id="a folder"),
    ],
)
def test_what_became_of_a_file_since_it_was_listed(
    tmp_path: Path, name: str, reason: str
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.md").write_text("secret")
    (tmp_path / "secret.md").write_text("secret")
    folder = tmp_path / "knowledge"
    (folder / "sub").mkdir(parents=True)
    (folder / "out.md").symlink_to(tmp_path / "secret.md")
    (folder / "out").symlink_to(tmp_path / "outside")
    (folder / "loop.md").symlink_to(folder / "loop.md")

    with pytest.raises(UnreadableError, match=reason):
        read_bytes(folder, name)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")

    assert read_bytes(tmp_path, "pipe.md") == b""
