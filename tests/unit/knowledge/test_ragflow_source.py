import pytest

from chatbot.knowledge.ragflow.source import NAME_BYTES, file_name


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        pytest.param("员工手册.md", "员工手册.md", id="an ordinary name"),
        pytest.param("a b (1).pdf", "a b (1).pdf", id="blanks and brackets"),
        pytest.param("../../etc/passwd", "_.._etc_passwd", id="a path"),
        pytest.param("C:\\x\\y.doc", "C_x_y.doc", id="a path of Windows"),
        pytest.param('a"; filename="b.html', "a_; filename=_b.html", id="quotes"),
        pytest.param("a\r\nSet-Cookie: b.txt", "a Set-Cookie_ b.txt", id="lines"),
        pytest.param("\u202efdp.exe", "fdp.exe", id="turned around"),
        pytest.param(".bashrc", "bashrc", id="hidden"),
        pytest.param("", "document", id="no name"),
        pytest.param("...", "document", id="only dots"),
    ],
)
def test_any_name_becomes_one_of_a_file(name: str, safe: str) -> None:
    assert file_name(name) == safe


@pytest.mark.parametrize("name", ["长" * 300 + ".pdf", "x" * 300, "x." + "y" * 300])
def test_names_are_of_bounded_length(name: str) -> None:
    assert 0 < len(file_name(name).encode()) <= NAME_BYTES
    assert file_name(name).endswith(".pdf") == name.endswith(".pdf")
