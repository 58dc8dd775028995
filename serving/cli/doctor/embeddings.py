"""Examines the endpoint for embeddings, by which the embedded base finds meanings."""

import time

from chatbot.errors import ModelError
from chatbot.settings import Settings
from serving.cli.doctor.findings import Finding, Note

PART = "embeddings"
TEXT = "How many days of leave are there?"


async def examine_embeddings(settings: Settings, note: Note) -> None:
    """Have one sentence embedded, where the settings name an endpoint for it."""
    if {settings.embedding_base_url, settings.embedding_model} == {None}:
        return
    if settings.ragflow_base_url is not None:
        detail = "EMBEDDING_MODEL is not used: RAGFlow has embeddings of its own."
        note(Finding(PART, "off", detail))
        return
    from chatbot.knowledge.local.opening import embedder_of  # noqa: PLC0415 - heavy

    embedder = embedder_of(settings)
    if embedder is None:
        return
    try:
        began = time.perf_counter()
        vector = await embedder.query(TEXT)
        milliseconds = (time.perf_counter() - began) * 1000
    except ModelError as error:
        advice = "Check EMBEDDING_BASE_URL, _MODEL and _API_KEY; until then words decide alone."
        note(Finding(PART, "fail", error.message, advice))
    else:
        detail = f"{embedder.model} embeds a sentence into {vector.size} numbers"
        note(Finding(PART, "ok", f"{detail} in {milliseconds:.0f} ms."))
    finally:
        await embedder.aclose()
