"""Server-sent events as a response."""

from collections.abc import AsyncGenerator, Callable

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class EventStream(StreamingResponse):
    """Server-sent events as they come; `at_end` is called at their end, or the client's."""

    media_type = "text/event-stream"

    def __init__(
        self, frames: AsyncGenerator[bytes, None], *, at_end: Callable[[], None] | None = None
    ) -> None:
        super().__init__(
            frames, headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        )
        self._frames = frames
        self._at_end = at_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until there is no more or the client leaves."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._at_end is not None:
                self._at_end()
            await self._frames.aclose()
