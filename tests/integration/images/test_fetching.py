"""Images are fetched from servers that may be named, and from nowhere else."""

from collections.abc import Iterator, Sequence

import pytest

from chatbot.errors import ImageError
from chatbot.images.addresses import is_public
from chatbot.images.fetching import fetch
from chatbot.images.policy import ImagePolicy
from tests.servers.loopback import Loopback, Reply, Request

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
LONGEST = 100_000
NAME = "pictures.test"


async def pictures(request: Request, reply: Reply) -> None:
    if target := request.query.get("to"):
        reply.extra.append(("Location", target[0]))
        await reply.send(b"", status=302)
        return
    match request.path:
        case "/a.png":
            await reply.send(PNG, content_type="text/plain")
        case "/page":
            await reply.send(b"<svg onload='alert(1)'/>", content_type="image/png")
        case "/announced":
            await reply.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        case "/endless":
            await reply.start(content_type="image/png")
            while True:
                await reply.chunk(PNG * 1000)
        case "/slow":
            await reply.start(content_type="image/png")
            await reply.chunk(PNG)
            await reply.closed_by_client()
        case "/packed":
            reply.extra.append(("Content-Encoding", "gzip"))
            await reply.send(PNG)
        case "/cut":
            await reply.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + PNG)
            reply.reset()
        case _:
            await reply.send(PNG, status=404)


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    with Loopback(pictures) as running:
        yield running


def policy(server: Loopback, *, hosts: Sequence[str] = ()) -> ImagePolicy:
    own = frozenset({f"127.0.0.1:{server.port}"})
    return ImagePolicy(hosts=frozenset(hosts), private_hosts=own, longest=LONGEST)


async def test_an_image_is_fetched_whatever_it_is_called(server: Loopback) -> None:
    image = await fetch(f"{server.url}/a.png", policy(server))
    assert (image.kind, image.data) == ("image/png", PNG)
    assert "cookie" not in server.requests[-1].headers


@pytest.mark.parametrize(
    ("path", "kind", "words"),
    [
        pytest.param("/page", "wrong_type", "PNG, JPEG", id="no image"),
        pytest.param("/announced", "too_large", "at most", id="announced as too large"),
        pytest.param("/endless", "too_large", "at most", id="too large as it comes"),
        pytest.param("/slow", "unreachable", "could not be fetched", id="too slow"),
        pytest.param("/packed", "unreachable", "compressed", id="compressed"),
        pytest.param("/cut", "unreachable", "could not be fetched", id="cut off"),
        pytest.param("/missing", "unreachable", "status 404", id="not there"),
        pytest.param(
            "/?to=http://localhost/a.png", "not_allowed", "can come inside", id="led elsewhere"
        ),
        pytest.param(
            "/?to=http://169.254.169.254/",
            "not_allowed",
            "can come inside",
            id="led to metadata",
        ),
        pytest.param(
            "/?to=file:///etc/passwd", "not_allowed", "can come inside", id="led to a file"
        ),
        pytest.param("/?to=http://[", "unreachable", "could not", id="led nowhere"),
    ],
)
async def test_only_an_image_of_the_right_size_comes(
    server: Loopback, path: str, kind: str, words: str
) -> None:
    url = f"{server.url}{path}"
    with pytest.raises(ImageError, match=words) as caught:
        await fetch(url, policy(server), seconds=0.5 if path == "/slow" else 30)
    assert caught.value.kind == kind
    assert caught.value.retryable is (kind == "unreachable")


async def test_redirects_are_followed_a_few_times(server: Loopback) -> None:
    image = await fetch(f"{server.url}/?to=/%3Fto%3D/%253Fto%253D/a.png", policy(server))
    assert image.data == PNG
    before = len(server.requests)
    with pytest.raises(ImageError, match="from one address to the next"):
        await fetch(
            f"{server.url}/?to=/%3Fto%3D/%253Fto%253D/%25253Fto%25253D/a.png", policy(server)
        )
    assert len(server.requests) - before == 4


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("https://example.com/a.png", id="a host nobody named"),
        pytest.param("http://images.test/a.png", id="without TLS"),
        pytest.param("https://images.test.evil.com/a.png", id="a name that begins so"),
        pytest.param("https://evilimages.test/a.png", id="a name that ends so"),
        pytest.param("https://u:p@images.test/a.png", id="with a password"),
        pytest.param("https://images.test:8443/a.png", id="another port"),
        pytest.param("https://images.test@evil.com/a.png", id="a name before the host"),
        pytest.param("https:\\\\evil.com\\@images.test/a.png", id="backslashes"),
        pytest.param("file:///etc/passwd", id="a file"),
        pytest.param("ftp://images.test/a.png", id="another protocol"),
        pytest.param("/etc/passwd", id="a path"),
        pytest.param("", id="nothing"),
    ],
)
async def test_other_hosts_are_refused_without_a_look(url: str) -> None:
    asked = []

    async def look_up(host: str, _: int) -> Sequence[str]:
        asked.append(host)
        return ["1.1.1.1"]

    allowed = ImagePolicy(hosts=frozenset({"images.test"}), look_up=look_up)
    with pytest.raises(ImageError):
        await fetch(url, allowed)
    assert asked == []


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0",  # noqa: S104
        "100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fc00::1",
        "fec0::1", "ff02::1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "::7f00:1",
        "fe80::1%eth0", "nonsense",
    ],
)  # fmt: skip
async def test_private_addresses_are_refused(address: str) -> None:
    async def look_up(_host: str, _port: int) -> Sequence[str]:
        return ["1.1.1.1", address]

    assert not is_public(address)
    anywhere = ImagePolicy(hosts=frozenset({"*"}), look_up=look_up)
    with pytest.raises(ImageError, match="public address"):
        await fetch("https://images.test/a.png", anywhere)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "localhost", "2130706433", "127.1", "[::ffff:10.0.0.1]"]
)
async def test_a_host_that_means_this_machine_is_refused(host: str) -> None:
    with pytest.raises(ImageError):
        await fetch(f"https://{host}/a.png", ImagePolicy(hosts=frozenset({"*"})))


@pytest.mark.parametrize("address", ["1.1.1.1", "2606:4700::1111", "::ffff:1.1.1.1"])
def test_public_addresses_are_known(address: str) -> None:
    assert is_public(address)


async def test_a_name_is_looked_up_once_and_what_was_checked_is_connected_to(
    server: Loopback,
) -> None:
    answers = [["127.0.0.1"], ["127.0.0.9"]]

    async def look_up(_host: str, _port: int) -> Sequence[str]:
        return answers.pop(0)

    named = frozenset({f"{NAME}:{server.port}"})
    rebinding = ImagePolicy(private_hosts=named, look_up=look_up)
    image = await fetch(f"http://{NAME}:{server.port}/a.png", rebinding)
    assert image.data == PNG
    assert server.requests[-1].headers["host"] == f"{NAME}:{server.port}"
    assert answers == [["127.0.0.9"]]


async def test_a_name_without_an_address_is_unreachable() -> None:
    async def look_up(host: str, _: int) -> Sequence[str]:
        raise OSError(host)

    with pytest.raises(ImageError, match=r"images\.test") as caught:
        await fetch(
            "https://images.test/a.png?token=secret",
            ImagePolicy(hosts=frozenset({"images.test"}), look_up=look_up),
        )
    assert caught.value.retryable
    assert "secret" not in caught.value.message


async def test_a_private_host_is_that_port_alone(server: Loopback) -> None:
    with pytest.raises(ImageError):
        await fetch(f"{server.url}/a.png", ImagePolicy(private_hosts=frozenset({"127.0.0.1"})))
