"""Server-sent events, however they are cut."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatbot.errors import ModelError
from chatbot.models import event_stream
from chatbot.models.event_stream import EventStream


def read(pieces: list[bytes]) -> list[bytes]:
    stream = EventStream()
    events = [event for piece in pieces for event in stream.feed(piece)]
    return events + stream.end()


@pytest.mark.parametrize(
    ("sent", "events"),
    [
        pytest.param(b"data: a\n\ndata: b\n\n", [b"a", b"b"], id="two"),
        pytest.param(b"data:a\n\n", [b"a"], id="no space"),
        pytest.param(b"data:  a\n\n", [b" a"], id="only one space is dropped"),
        pytest.param(b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"], id="Windows' line ends"),
        pytest.param(b"data: a\r\rdata: b\r\r", [b"a", b"b"], id="carriage returns"),
        pytest.param(b"data: a\ndata: b\n\n", [b"a\nb"], id="two lines of one event"),
        pytest.param(b": ping\n\nevent: x\nid: 1\nretry: 5\ndata: a\n\n", [b"a"], id="others"),
        pytest.param(b"\n\n\ndata: a\n\n\n\n", [b"a"], id="empty lines"),
        pytest.param(b"data: a", [b"a"], id="no end at all"),
        pytest.param(b"data: a\n", [b"a"], id="half an end"),
        pytest.param(b"data: a\r", [b"a"], id="half an end, by carriage return"),
        pytest.param(b"data: \n\ndata:\n\n", [], id="empty data"),
        pytest.param(b"", [], id="nothing"),
    ],
)
@pytest.mark.parametrize("size", [1, 2, 5, 1000])
def test_events_are_read(sent: bytes, events: list[bytes], size: int) -> None:
    assert read([sent[start : start + size] for start in range(0, len(sent), size)]) == events


def test_an_event_without_end_is_refused() -> None:
    stream = EventStream()
    piece = b"x" * (1024 * 1024)
    for _ in range(event_stream.LONGEST_EVENT // len(piece)):
        stream.feed(piece)
    with pytest.raises(ModelError, match="more in one piece") as caught:
        stream.feed(piece)
    assert caught.value.kind == "protocol"


PARTS = st.lists(
    st.sampled_from([b"data: ", b"data:", b"\r", b"\n", b"\r\n", b": c", b"a", "思".encode()]),
    max_size=20,
).map(b"".join)


@settings(deadline=None)
@given(PARTS, st.integers(1, 6))
def test_the_pieces_do_not_matter(sent: bytes, size: int) -> None:
    assert read([sent[at : at + size] for at in range(0, len(sent), size)]) == read([sent])
