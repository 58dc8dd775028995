"""Addresses that open a document at the place where a passage stands."""

import re
from urllib.parse import quote

from chatbot.domain import Passage

_PAGE = re.compile(r"(?:^|› )p\. (\d+)(?:–\d+)?$")
_FIRST_WORDS = re.compile(r"\S.{0,40}(?=\s|$)|\S.{0,20}")
_SHOWN_AS_THEY_ARE = (".md", ".markdown", ".txt", ".text")


def address_of(passage: Passage, documents_url: str) -> str:
    """Return the address of the passage's document below `documents_url`, with the place.

    Browsers open a PDF at its page, and a text where the passage's first words stand.
    """
    address = f"{documents_url}/{quote(passage.document_id)}"
    if page := _PAGE.search(passage.location):
        return f"{address}#page={page[1]}"
    words = _FIRST_WORDS.search(passage.text)
    if words and passage.document.lower().endswith(_SHOWN_AS_THEY_ARE):
        # a dash and a comma separate the parts of a text fragment
        return f"{address}#:~:text={quote(words[0], safe='').replace('-', '%2D')}"
    return address
