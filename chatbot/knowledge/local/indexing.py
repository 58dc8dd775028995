"""Makes the index over a folder, reading only what is new or changed."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from threading import Event

from chatbot.errors import KnowledgeBaseError
from chatbot.knowledge.local.building import Builder
from chatbot.knowledge.local.conversion import Converter
from chatbot.knowledge.local.cutting import Piece, cut, cut_pages
from chatbot.knowledge.local.folder import CONVERTED, MARKDOWN, File, Listing
from chatbot.knowledge.local.index import Document, Index
from chatbot.knowledge.local.reading import UnreadableError, decode, read_bytes
from chatbot.knowledge.local.storage import Storage

Report = Callable[[str, str | None], None]  # a document, and its problem, None at first


class Indexing:
    """Reads the documents of a folder into an index and saves it.

    Set `closing` to break it off: what was read until then is saved, and the next time goes on
    from there.
    """

    def __init__(
        self,
        folder: Path,
        storage: Storage,
        *,
        closing: Event | None = None,
        report: Report | None = None,
    ) -> None:
        self._folder = folder
        self._storage = storage
        self._closing = closing or Event()
        self._report = report or (lambda *_: None)

    def run(self, listing: Listing, earlier: Index | None) -> Index:
        """Return the index over what is listed; the earlier one, if nothing changed.

        Raises:
            KnowledgeBaseError: It was broken off.
        """
        documents = earlier.documents if earlier else ()
        unchanged = {(each.name, each.size, each.modified): each for each in documents}
        listed = [(each.name, each.size, each.modified) for each in listing.files]
        if earlier and listed == list(unchanged):
            return earlier
        builder = Builder(earlier)
        with Converter(closing=self._closing) as converter:
            for file in listing.files:
                same = unchanged.get((file.name, file.size, file.modified))
                if same:
                    builder.keep(same)
                elif not self._closing.is_set():
                    self._report(file.name, None)
                    self._report(file.name, self._read(builder, file, converter))
        index = builder.build()
        self._storage.save(index, complete=not self._closing.is_set())
        if self._closing.is_set():
            message = "The knowledge base was closed while its documents were read."
            raise KnowledgeBaseError("unavailable", message)
        return index

    def _read(self, builder: Builder, file: File, converter: Converter) -> str:
        """Add one document and return why it has no passages, or ""."""
        document = Document(file.name, file.size, file.modified, digest="")
        try:
            content = read_bytes(self._folder, file.name)
            document = replace(document, digest=sha256(content).hexdigest())
            if same := builder.known(document):
                return builder.keep(replace(same, modified=file.modified))
            cut_ = self._cut(document, file.suffix, content, converter)
            return builder.add(document, *cut_)
        except UnreadableError as error:
            if self._closing.is_set():  # it says nothing about the file
                return ""
            return builder.skip(document, str(error))

    def _cut(
        self, document: Document, suffix: str, content: bytes, converter: Converter
    ) -> tuple[str, Sequence[Piece]]:
        if suffix not in CONVERTED:
            return cut(decode(content), markdown=suffix in MARKDOWN)
        pages = self._storage.conversion(document.digest)
        if pages is None:
            pages = converter.convert(suffix, content)
            self._storage.keep_conversion(document.digest, pages)
        return cut_pages(pages) if suffix == ".pdf" else cut("\n\n".join(pages), markdown=True)
