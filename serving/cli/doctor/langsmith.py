"""Examines whether turns are traced, and whether LangSmith takes the traces."""

import asyncio
import os

import aiohttp

from chatbot.settings import Settings
from chatbot.tls import tls_context
from serving.cli.doctor.findings import Finding, Note
from serving.cli.doctor.values import without_password

PART = "langsmith"
PUBLIC = "https://api.smith.langchain.com"
SECONDS = 4.0
REFUSED = frozenset({401, 403})
ERRORS = 500


async def examine_langsmith(settings: Settings, note: Note) -> None:
    """Ask LangSmith who it is and whether the key is its own. No trace is sent."""
    if not settings.langsmith_tracing:
        note(Finding(PART, "off", "LANGSMITH_TRACING is not true: no traces are sent."))
        return
    address = os.environ.get("LANGSMITH_ENDPOINT", "").rstrip("/")
    key = os.environ.get("LANGSMITH_API_KEY", "")
    if not key and not address:
        advice = "Set LANGSMITH_API_KEY, or LANGSMITH_TRACING=false."
        note(Finding(PART, "fail", "LANGSMITH_TRACING is on without a key.", advice))
        return
    note(Finding(PART, "ok", _what_leaves(settings)))
    note(await _reached(address or PUBLIC, key))


def _what_leaves(settings: Settings) -> str:
    """Return which turns are traced, and what is not told of them."""
    switches = {
        "questions": settings.langsmith_hide_inputs,
        "answers": settings.langsmith_hide_outputs,
        "metadata": settings.langsmith_hide_metadata,
    }
    hidden = [name for name, is_hidden in switches.items() if is_hidden]
    rate = settings.langsmith_tracing_sampling_rate
    part = "Every turn is" if rate in {None, 1} else f"{rate * 100:g}% of the turns are"
    return f"{part} traced; hidden: {', '.join(hidden) or 'nothing but secrets'}."


async def _reached(address: str, key: str) -> Finding:
    shown = without_password(address)
    try:
        status = await _status(f"{address}/sessions?limit=1", key)
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        detail = f"LangSmith does not answer at {shown} ({type(error).__name__})."
        advice = "Check LANGSMITH_ENDPOINT and the network; turns go on without traces."
        return Finding(PART, "fail", detail, advice)
    if status in REFUSED:
        detail = f"LangSmith at {shown} refuses LANGSMITH_API_KEY (status {status})."
        return Finding(
            PART, "fail", detail, "Make a new key in LangSmith, or check the region."
        )
    if status >= ERRORS:
        detail = f"LangSmith at {shown} answers with status {status}."
        return Finding(PART, "warn", detail, "Try again later; turns go on without traces.")
    project = os.environ.get("LANGSMITH_PROJECT") or "default"
    detail = f"LangSmith answers at {shown}; turns are traced into the project {project}."
    return Finding(PART, "ok", detail)


async def _status(address: str, key: str) -> int:
    headers = {"x-api-key": key} if key else {}
    if workspace := os.environ.get("LANGSMITH_WORKSPACE_ID"):
        headers["x-tenant-id"] = workspace
    secure = await asyncio.to_thread(tls_context) if address.startswith("https:") else True
    connector = aiohttp.TCPConnector(ssl=secure)
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    async with (
        aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
        session.get(address, headers=headers, allow_redirects=False) as response,
    ):
        return response.status
