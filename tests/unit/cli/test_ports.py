import socket

import pytest

from chatbot.errors import ConfigurationError
from serving.cli.ports import address_of, is_local, listen


def test_free_port_is_listened_on() -> None:
    with listen("127.0.0.1", 0, "…") as bound:
        with socket.create_connection(bound.getsockname()):
            pass
        assert address_of(bound) == f"http://127.0.0.1:{bound.getsockname()[1]}"


def test_port_can_be_taken_again_at_once() -> None:
    with listen("127.0.0.1", 0, "…") as bound:
        port = bound.getsockname()[1]
        with socket.create_connection(bound.getsockname()):
            accepted, _ = bound.accept()
            accepted.close()
    listen("127.0.0.1", port, "…").close()


def test_taken_port_is_named_with_the_way_out() -> None:
    with listen("127.0.0.1", 0, "…") as bound:
        port = bound.getsockname()[1]
        with pytest.raises(ConfigurationError, match=rf"Port {port} .* taken .*--port 8123"):
            listen("127.0.0.1", port, "chatbot serve --port 8123")


@pytest.mark.parametrize(
    ("host", "words"),
    [
        pytest.param("192.0.2.1", "cannot be used", id="address of another machine"),
        pytest.param("no such host", "is not an address", id="no address"),
    ],
)
def test_unusable_address_is_named(host: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        listen(host, 8123, "…")


def test_address_of_all_interfaces_is_one_that_opens() -> None:
    with listen("0.0.0.0", 0, "…") as bound:  # noqa: S104 - bound, never served
        assert address_of(bound).startswith("http://127.0.0.1:")
        assert not is_local(bound)


@pytest.mark.parametrize(
    "host", [pytest.param("127.0.0.1", id="number"), pytest.param("localhost", id="name")]
)
def test_address_of_this_machine_alone(host: str) -> None:
    with listen(host, 0, "…") as bound:
        assert is_local(bound)
