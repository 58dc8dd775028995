"""LangSmith's client, such that no trace holds a secret and nobody waits for a dead server."""

import re
import threading
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any

import requests
from langsmith import Client
from langsmith.utils import LangSmithConnectionError
from urllib3.util import Retry

from chatbot.redaction import REMOVED, SECRET_NAME, SHORTEST_SECRET, Redaction
from chatbot.traces.delivery import Delivery

CONNECT_SECONDS, READ_SECONDS = 3.0, 5.0
ANSWER_SECONDS = 2.5  # for what LangSmith is asked
CLOSE_SECONDS = 3.0
# Ends that somebody meant: they are no errors of the run.
_MEANT = {"CancelledError": "cancelled", "GeneratorExit": "early", "StoppedError": "stopped"}
EDGE = "route_after_"  # it takes the whole state, and its outcome is the next step
_RUNS = ("/runs", "/runs/batch", "/runs/multipart")  # where they are sent to
_CLASS = re.compile(r"\w+")
_OF_CALLS = ("invocation_params", "options")  # settings of a call, whose user is named
_WORDS = ("query",)  # facts in the metadata that people's words are in


class TraceClient(Client):
    """Sends traces in the background.

    Whatever leaves has the secrets taken out, in errors and settings of calls as well. A run
    that was cancelled, or of which no more was wanted, ends without an error; its metadata has
    `ended`. Questions or answers that are to be hidden do not stand elsewhere either: in what
    an error says, in the conversation that a step takes and gives, in the prompt after it.
    """

    def __init__(self, redacted: Redaction, **choices: Any) -> None:  # noqa: ANN401 - LangSmith's own
        self._without_secrets = partial(without_secrets, redacted)
        self._closed = threading.Event()
        self._delivery = Delivery()
        super().__init__(
            anonymizer=self._without_secrets,
            omit_traced_runtime_info=True,  # LangSmith's variables, its address among them
            timeout_ms=(int(CONNECT_SECONDS * 1000), int(READ_SECONDS * 1000)),
            # A server may ask for a pause of an hour: nothing here is worth that.
            retry_config=Retry(
                total=2,
                connect=0,
                read=0,
                status_forcelist=(408, 425, 429, 500, 502, 503, 504),
                allowed_methods=None,
                backoff_factor=0.5,
                raise_on_status=False,
                respect_retry_after_header=False,
            ),
            **choices,
        )

    def create_run(self, *args: Any, **run: Any) -> None:  # noqa: ANN401 - LangSmith's signature
        """See `Client.create_run`. An edge of the graph is no step: it is left out."""
        if not _is_edge(run):
            super().create_run(*args, **self._fit_to_leave(run))

    def update_run(self, *args: Any, **run: Any) -> None:  # noqa: ANN401 - as above
        """See `Client.update_run`."""
        if not _is_edge(run):
            super().update_run(*args, **self._fit_to_leave(run))

    def request_with_retries(
        self,
        /,
        method: Any,  # noqa: ANN401 - as above
        pathname: str,
        **choices: Any,  # noqa: ANN401 - as above
    ) -> requests.Response:
        """See `Client.request_with_retries`. After the end nothing is sent."""
        if self._closed.is_set():
            message = "the process ends"
            raise LangSmithConnectionError(message)
        if sending := choices.get("request_kwargs"):
            limits = {"timeout": (CONNECT_SECONDS, READ_SECONDS)}
            choices["request_kwargs"] = {**sending, **limits}
        elif method == "GET":  # somebody waits for it, and the end of the process as well
            choices.setdefault("timeout", (CONNECT_SECONDS, ANSWER_SECONDS))
        with self._delivery.sending() if pathname.endswith(_RUNS) else nullcontext():
            return super().request_with_retries(method, pathname, **choices)

    def close(self, timeout: float | None = CLOSE_SECONDS) -> None:
        """Send what is left, as far as the time allows, and drop the rest."""
        self.flush(timeout=timeout)
        self._closed.set()
        if self._delivery.under_way or (
            self.tracing_queue and self.tracing_queue.unfinished_tasks
        ):
            self._delivery.failed(TimeoutError())
        super().close(timeout=0)

    def samples(self, trace_id: str) -> bool:
        """Whether this trace is one of those that are sent."""
        return bool(self._should_sample(trace_id))

    def _fit_to_leave(self, run: dict[str, Any]) -> dict[str, Any]:
        error, extra = run.get("error"), dict(run.get("extra") or {})
        given = dict(extra.get("metadata") or {})
        # Whatever else a caller puts into the config of a run comes here too.
        metadata = {n: REMOVED if SECRET_NAME.search(n) else given[n] for n in given}
        if error is not None:
            kind = found[0] if (found := _CLASS.match(error)) else ""
            if meant := _MEANT.get(kind):
                run["error"], metadata["ended"] = None, meant
            elif self.hides_words:
                run["error"] = kind
        if self.hides_words:
            metadata = {name: metadata[name] for name in metadata if name not in _WORDS}
        if self._hide_metadata:
            for name in _OF_CALLS:
                extra[name] = {k: v for k, v in extra.get(name, {}).items() if k != "user"}
        run |= self._without_the_other_side(run)
        if extra or metadata:
            run["extra"] = self._without_secrets({**extra, "metadata": metadata})
        return run

    def _without_the_other_side(self, run: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is to stand for inputs and outputs that hold questions and answers."""
        if run.get("run_type") in {"retriever", "tool"}:
            return {}
        hidden: dict[str, Any] = {}
        is_answer = run.get("run_type") == "llm" and run.get("name") == "answer"
        if self._hide_inputs and run.get("outputs") and not is_answer:
            hidden["outputs"] = {}
        if self._hide_outputs and run.get("inputs") and run.get("parent_run_id") is not None:
            hidden["inputs"] = {}
        return hidden

    @property
    def hides_words(self) -> bool:
        """Whether people's words are not to leave, as questions or as answers."""
        return bool(self._hide_inputs or self._hide_outputs)


def _is_edge(run: Mapping[str, Any]) -> bool:
    return str(run.get("name")).startswith(EDGE)


def without_secrets(redacted: Redaction, value: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the JSON value with the secrets taken out of its texts."""
    if isinstance(value, str):
        return redacted(value) if len(value) >= SHORTEST_SECRET else value
    if isinstance(value, Mapping):
        return {key: without_secrets(redacted, each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets(redacted, each) for each in value]
    return value
