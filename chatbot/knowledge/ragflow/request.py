"""What the SDK of RAGFlow would send: its methods describe the call, nothing is sent."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragflow_sdk import RAGFlow

File = tuple[str, tuple[str, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One HTTP request. `path` begins behind the version of the API."""

    method: str
    path: str
    params: Mapping[str, Any] | None = None
    json: Any = None
    files: Sequence[File] | None = None

    @property
    def query(self) -> list[tuple[str, str]]:
        """The parameters as they stand in the address: lists repeated, nothing left out."""
        pairs = []
        for name, value in (self.params or {}).items():
            values = value if isinstance(value, list | tuple) else [value]
            pairs += [(name, str(each)) for each in values if each is not None]
        return pairs


Call = Callable[[], object] | Request


class _Described(BaseException):
    """Leaves a method of the SDK at the point where it would send its request.

    Derived from `BaseException` so that no `except Exception` of the SDK holds it back.
    """

    def __init__(self, request: Request) -> None:
        super().__init__(request)
        self.request = request


class DescribingRAGFlow(RAGFlow):  # type: ignore[misc]  # the SDK has no types
    """RAGFlow's SDK with the sending taken out.

    The SDK sends with a blocking `requests` call: no deadline, a new connection each time, and
    errors whose code is lost. Every resource call of it ends in one of the five methods below.
    Here they hand the finished request to whoever asked, who sends it without blocking.
    """

    def get(self, path: str, params: Any = None, json: Any = None) -> None:  # noqa: ANN401
        """Describe a GET."""
        raise _Described(Request(method="GET", path=path, params=params, json=json))

    def post(
        self,
        path: str,
        json: Any = None,  # noqa: ANN401 - the SDK's signature
        stream: bool = False,  # noqa: ARG002, FBT001, FBT002 - the SDK's signature
        files: Any = None,  # noqa: ANN401 - the SDK's signature
    ) -> None:
        """Describe a POST."""
        raise _Described(Request(method="POST", path=path, json=json, files=files))

    def put(self, path: str, json: Any = None) -> None:  # noqa: ANN401
        """Describe a PUT."""
        raise _Described(Request(method="PUT", path=path, json=json))

    def patch(self, path: str, json: Any = None) -> None:  # noqa: ANN401
        """Describe a PATCH, which older versions of the SDK do not have."""
        raise _Described(Request(method="PATCH", path=path, json=json))

    def delete(self, path: str, json: Any = None) -> None:  # noqa: ANN401
        """Describe a DELETE."""
        raise _Described(Request(method="DELETE", path=path, json=json))


def described(call: Call) -> Request:
    """Return the request that `call`, a method of the SDK with its arguments, would send.

    Raises:
        TypeError: The call sends nothing.
    """
    if isinstance(call, Request):
        return call
    try:
        result = call()
        if isinstance(result, Generator):  # `Session.ask` begins when it is first iterated
            next(result, None)
    except _Described as described_:
        return described_.request
    message = f"{call!r} sends no request"
    raise TypeError(message)
