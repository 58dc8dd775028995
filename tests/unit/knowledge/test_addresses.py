"""Addresses that open a document at its place."""

import pytest

from chatbot.domain import Passage
from chatbot.knowledge.addresses import address_of


def at(document_id: str, text: str = "", location: str = "") -> str:
    passage = Passage(
        id="1",
        text=text,
        document=document_id,
        document_id=document_id,
        assistant="a",
        score=1.0,
        location=location,
    )
    return address_of(passage, "/api/documents")


@pytest.mark.parametrize(
    ("document_id", "text", "location", "address"),
    [
        pytest.param("a/b.pdf", "text", "p. 12", "a/b.pdf#page=12", id="page of a PDF"),
        pytest.param(
            "a/b.pdf", "text", "Rules › p. 3", "a/b.pdf#page=3", id="page below a heading"
        ),
        pytest.param("a/b.pdf", "text", "p. 3–4", "a/b.pdf#page=3", id="first page of several"),
        pytest.param("b.docx", "text", "Rules", "b.docx", id="Word has no places"),
        pytest.param("b.md", "A pump.", "", "b.md#:~:text=A%20pump.", id="text"),
        pytest.param(
            "b.txt",
            "one-two, three\nfour",
            "",
            "b.txt#:~:text=one%2Dtwo%2C%20three",
            id="first line, signs of the fragment itself",
        ),
        pytest.param(
            "b.md",
            "word " * 30,
            "",
            "b.md#:~:text=" + "%20".join(["word"] * 8),
            id="whole words of a long line",
        ),
        pytest.param("b.md", "字" * 90, "", "b.md#:~:text=" + "%E5%AD%97" * 21, id="no spaces"),
        pytest.param("中/a b#?.md", "", "", "%E4%B8%AD/a%20b%23%3F.md", id="quoted name"),
    ],
)
def test_addresses(document_id: str, text: str, location: str, address: str) -> None:
    assert at(document_id, text, location) == f"/api/documents/{address}"
