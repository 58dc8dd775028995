"""Examines RAGFlow itself: its version, and the datasets that find nothing."""

from pydantic import SecretStr

from chatbot.knowledge.ragflow.errors import RagflowError
from chatbot.knowledge.ragflow.fields import Row, number_of, text
from chatbot.knowledge.ragflow.listing import rows_of_all_pages
from chatbot.knowledge.ragflow.request import Request
from chatbot.knowledge.ragflow.transport import RagflowTransport
from chatbot.knowledge.ragflow.wire import PAGE_SIZE
from serving.cli.doctor.findings import Finding, Note
from serving.cli.words import in_one_line

PART = "knowledge"
SERIES = "datasets find nothing"


async def examine_ragflow(address: str, key: SecretStr, seconds: float, note: Note) -> None:
    """Tell its version, count the datasets and name the empty ones."""
    transport = RagflowTransport(address, key.get_secret_value(), timeout_seconds=seconds)
    try:
        note(await _version(transport))
        rows = await rows_of_all_pages(
            transport,
            lambda page: lambda: transport.list_datasets(page=page, page_size=PAGE_SIZE),
            key="datasets",
        )
    finally:
        await transport.close()
    note(Finding(PART, "ok", f"Datasets: {len(rows)}."))
    for row in rows:
        if not number_of(row.get("chunk_count")):
            note(_empty(row))


async def _version(transport: RagflowTransport) -> Finding:
    try:
        envelope = await transport.fetch(Request(method="GET", path="/system/version"))
    except RagflowError:
        return Finding(PART, "ok", "RAGFlow does not tell its version, as older ones do not.")
    version = in_one_line(text(envelope.get("data")), 40)
    return Finding(PART, "ok", f"RAGFlow has the version {version or 'unknown'}.")


def _empty(row: Row) -> Finding:
    name = in_one_line(text(row.get("name")))
    if number_of(row.get("document_count")):
        detail = f"No document of the dataset {name} is parsed: it finds nothing."
        return Finding(PART, "warn", detail, "Parse its documents in RAGFlow.", SERIES)
    detail = f"The dataset {name} has no documents."
    advice = f"chatbot ingest FILES --dataset {name}"
    return Finding(PART, "warn", detail, advice, SERIES)
