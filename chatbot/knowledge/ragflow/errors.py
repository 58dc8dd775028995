"""What goes wrong with RAGFlow, told by its codes, its statuses and its messages."""

import re

from chatbot.errors import KnowledgeBaseError, KnowledgeFailure
from chatbot.text import without_addresses

SUCCESS = 0
UNAUTHORIZED = 401
MESSAGE_LENGTH = 300

_KINDS: dict[int, KnowledgeFailure] = {
    101: "argument",
    103: "forbidden",
    106: "unavailable",
    108: "forbidden",
    109: "forbidden",
    401: "forbidden",
    403: "forbidden",
    404: "not_found",
    409: "argument",
}
_TRANSIENT = frozenset({100, 105, 106, 400, 500})
_CALLER = re.compile(r"^\W*(Value|Type|Key|Lookup|Attribute|Index)Error\(|MethodNotAllowed")
_MISSING = re.compile(
    r"(don'?t|doesn'?t|not|do not|does not) (own|exist)|not found|lacks permission|no such",
    re.IGNORECASE,
)
_ADVICE: dict[KnowledgeFailure, str] = {
    "unavailable": "Try again later; if it stays so, look at RAGFlow's own log.",
    "forbidden": "Check RAGFLOW_API_KEY and what its user may see in RAGFlow.",
    "not_found": "Check in RAGFlow that it still exists and belongs to the user of the key.",
    "argument": "Check the settings of the assistant and its datasets in RAGFlow.",
    "protocol": "Check that RAGFLOW_BASE_URL is the address of RAGFlow, not of another page.",
}


class RagflowError(KnowledgeBaseError):
    """RAGFlow gave no usable answer.

    `ragflow_code` and `detail` are RAGFlow's own code and message, where it gave them.
    `transient` says that the same request may well succeed in a moment.
    """

    def __init__(  # noqa: PLR0913 - all that is known, by name
        self,
        kind: KnowledgeFailure,
        message: str,
        *,
        ragflow_code: int | None = None,
        detail: str = "",
        transient: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(kind, message, retry_after=retry_after)
        self.ragflow_code = ragflow_code
        self.detail = detail
        self.transient = transient


class RagflowTimeoutError(RagflowError):
    """RAGFlow did not answer in time: it may be down, or only slow."""


def refused(code: int, detail: str) -> RagflowError:
    """Return the error for an envelope whose `code` is not success."""
    kind = _kind(code, detail)
    said = f"RAGFlow answered with code {code}"
    if detail:
        said += f": {detail.rstrip('.')}"
    return RagflowError(
        kind,
        f"{said}. {_ADVICE[kind]}",
        ragflow_code=code,
        detail=detail,
        transient=kind == "unavailable" and code in _TRANSIENT,
    )


def unreachable(
    reason: str, *, in_full: str = "", retry_after: float | None = None
) -> RagflowError:
    """Return the error for a RAGFlow that could not be talked to at all.

    `in_full` is the reason with the address.
    """
    message, full = (
        f"RAGFlow cannot be reached: {why}. Check that it runs and that"
        " RAGFLOW_BASE_URL is right."
        for why in (reason, in_full or reason)
    )
    error = RagflowError(
        "unavailable", message, detail=reason, transient=True, retry_after=retry_after
    )
    error.tell_in_full(full)
    return error


def too_late(seconds: float) -> RagflowTimeoutError:
    """Return the error for an answer that did not come in time."""
    reason = f"no answer within {seconds:g} seconds"
    message = unreachable(reason).message
    return RagflowTimeoutError("unavailable", message, detail=reason, transient=True)


def unusable(reason: str, *, transient: bool = True) -> RagflowError:
    """Return the error for a reply that is not what RAGFlow's API sends."""
    return RagflowError(
        "protocol",
        f"RAGFlow sent something unusable: {reason}. {_ADVICE['protocol']}",
        detail=reason,
        transient=transient,
    )


def one_line(text: object) -> str:
    """Return foreign text as a single line of bounded length, which tells no address."""
    line = without_addresses(" ".join(str(text).split()))
    return line if len(line) <= MESSAGE_LENGTH else f"{line[:MESSAGE_LENGTH]}…"


def _kind(code: int, detail: str) -> KnowledgeFailure:
    if code == 102 and _MISSING.search(detail):  # noqa: PLR2004 - the code for nearly everything
        return "not_found"
    if code == 404 and detail.startswith("Not Found: /"):  # noqa: PLR2004 - no such path
        return "protocol"
    if code == 102 or (code == 100 and _CALLER.search(detail)):  # noqa: PLR2004 - as above
        return "argument"
    return _KINDS.get(code, "unavailable")
