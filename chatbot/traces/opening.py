"""Opens what sends traces, where they are wanted."""

import asyncio
import logging
import os
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langsmith import configure
from langsmith.utils import (
    LangSmithMissingAPIKeyWarning,
    LangSmithUserError,
    tracing_is_enabled,
)

from chatbot.errors import ConfigurationError
from chatbot.ports import Traces
from chatbot.redaction import redaction
from chatbot.settings import Settings
from chatbot.tasks import Background


@asynccontextmanager
async def open_traces(
    settings: Settings, background: Background
) -> AsyncIterator[Traces | None]:
    """Have the turns of this process traced, where LANGSMITH_TRACING says so.

    Raises:
        ConfigurationError: LangSmith's own variables hold something that cannot be used.
    """
    if not tracing_is_enabled():
        yield None
        return
    # Loaded where turns are traced: a start does not wait for it elsewhere.
    from chatbot.traces.client import TraceClient  # noqa: PLC0415 - as above
    from chatbot.traces.delivery import quieten  # noqa: PLC0415 - as above
    from chatbot.traces.langsmith import LangSmithTraces  # noqa: PLC0415 - as above

    quieten(logging.getLogger("langsmith.client"))
    # Its threads hold up no end of a process: `TraceClient.close` has sent what is left.
    os.environ.setdefault("LANGSMITH_USE_DAEMON", "true")
    redacted = await asyncio.to_thread(redaction, settings)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", LangSmithMissingAPIKeyWarning)
            client = TraceClient(
                redacted,
                hide_inputs=settings.langsmith_hide_inputs,
                hide_outputs=settings.langsmith_hide_outputs,
                hide_metadata=settings.langsmith_hide_metadata,
                tracing_sampling_rate=settings.langsmith_tracing_sampling_rate,
            )
    except LangSmithMissingAPIKeyWarning:
        message = "LANGSMITH_API_KEY is missing: set it, or LANGSMITH_TRACING=false."
        raise ConfigurationError(message) from None
    except (LangSmithUserError, ValueError) as error:
        message = f"LangSmith cannot be used as it is set (LANGSMITH_...): {error}"
        raise ConfigurationError(message) from None
    configure(client=client)
    try:
        yield LangSmithTraces(client, background, redacted, hides_words=client.hides_words)
    finally:
        configure(client=None)
        await asyncio.to_thread(client.close)
