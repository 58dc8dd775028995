"""What LangSmith is told about turns after they ended, and where it shows them."""

import asyncio
import itertools
import logging
import uuid
from functools import partial

from langsmith.schemas import TracerSession
from langsmith.utils import LangSmithError, LangSmithNotFoundError, get_tracer_project
from requests import RequestException

from chatbot.domain import Turn
from chatbot.redaction import Redaction
from chatbot.tasks import Background
from chatbot.traces.client import TraceClient
from chatbot.traces.delivery import reason_of

logger = logging.getLogger(__name__)

KEY = "user_score"
LINK_SECONDS = 3.0
_SCORES = {"up": 1, "down": 0}
_NAMESPACE = uuid.UUID("5f0c1d9e-7f0b-4f6e-9d6c-3c1a9d1d7a52")


class LangSmithTraces:
    """Speaks to LangSmith behind the turns. The caller owns `client` and its time limits.

    People's comments go without secrets, and with `hides_words` not at all.
    """

    def __init__(
        self,
        client: TraceClient,
        background: Background,
        redacted: Redaction,
        *,
        hides_words: bool = False,
    ) -> None:
        self._client = client
        self._background = background
        self._redacted = redacted
        self._hides_words = hides_words
        self._newest: dict[str, Turn] = {}
        self._numbers = itertools.count()
        self._alone = asyncio.Lock()
        self._known_project: TracerSession | None = None

    def rated(self, turn: Turn) -> None:
        """See `Traces.rated`."""
        if self._has_trace(turn):
            self._newest[turn.id] = turn
            work = partial(self._send, turn.id)
            self._background.start(f"feedback {next(self._numbers)}", work)

    async def link(self, turn: Turn) -> str | None:
        """See `Traces.link`."""
        if not self._has_trace(turn):
            return None
        try:
            async with asyncio.timeout(LINK_SECONDS):
                return await asyncio.to_thread(self._address, turn)
        except (LangSmithError, RequestException, TimeoutError, ValueError) as error:
            logger.warning("LangSmith does not say where a trace is: %s", reason_of(error))
            return None

    def _has_trace(self, turn: Turn) -> bool:
        trace_id = turn.record.get("trace_id")
        return bool(trace_id) and self._client.samples(str(trace_id))

    async def _send(self, turn_id: str) -> None:
        """Send the newest rating of a turn, after those that were begun before."""
        async with self._alone:
            if (turn := self._newest.pop(turn_id, None)) is None:
                return
            try:
                await asyncio.to_thread(self._tell, turn)
            except (LangSmithError, RequestException, ValueError) as error:
                logger.warning("feedback did not reach LangSmith: %s", reason_of(error))

    def _tell(self, turn: Turn) -> None:
        """Make the turn's feedback there be as it is here: one id for each turn."""
        feedback = turn.record.get("feedback") or {}
        id_ = uuid.uuid5(_NAMESPACE, turn.id)
        score = _SCORES.get(feedback.get("thumb") or "")
        comment = None
        if not self._hides_words and (given := feedback.get("comment")):
            comment = self._redacted(str(given))
        try:
            if score is None:
                self._client.delete_feedback(id_)
            else:
                self._client.update_feedback(id_, score=score, comment=comment)
        except LangSmithNotFoundError:
            if score is not None:
                self._client.create_feedback(
                    turn.id,
                    KEY,
                    score=score,
                    comment=comment,
                    feedback_id=id_,
                    session_id=self._project().id,
                    start_time=turn.started_at,
                    stop_after_attempt=1,
                )

    def _address(self, turn: Turn) -> str:
        return f"{self._project().url}/r/{turn.id}?poll=true"

    def _project(self) -> TracerSession:
        if self._known_project is None:
            name = get_tracer_project()
            self._known_project = self._client.read_project(project_name=name)
        return self._known_project
