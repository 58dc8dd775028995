"""Other web sites are kept out, and what else the server has is left alone."""

import pytest

from serving.http.limits import BODY_BYTES
from tests.integration.http.service import Service

QUESTION = {"question": ""}  # refused later, with 422: the protection let it pass


@pytest.mark.parametrize(
    ("host", "status"),
    [
        pytest.param("127.0.0.1:8000", 200, id="loopback address"),
        pytest.param("127.8.8.8", 200, id="another loopback address"),
        pytest.param("localhost:1", 200, id="localhost"),
        pytest.param("LOCALHOST", 200, id="in capitals"),
        pytest.param("app.localhost", 200, id="below localhost"),
        pytest.param("[::1]:8000", 200, id="IPv6 loopback"),
        pytest.param("chat.example.com", 200, id="allowed by the settings"),
        pytest.param("CHAT.example.com:443", 200, id="allowed, with a port"),
        pytest.param("evil.example.com", 421, id="name of another site"),
        pytest.param("localhost.evil.com", 421, id="name that begins like ours"),
        pytest.param("192.168.1.5", 421, id="address in the network"),
        pytest.param("127.0.0.1.evil.com", 421, id="name that begins like an address"),
        pytest.param("evil.com@localhost:x", 421, id="not a host name"),
    ],
)
@pytest.mark.parametrize("path", ["/", "/health", "/api/sessions"])
def test_host_name_must_be_known(service: Service, host: str, status: int, path: str) -> None:
    response = service.client.get(path, headers={"Host": host})

    assert response.status_code == status
    if status != 200:
        assert response.json()["error"]["code"] == "host_not_allowed"


@pytest.mark.parametrize(
    ("headers", "passes"),
    [
        pytest.param({}, True, id="no browser"),
        pytest.param({"Origin": "{own}"}, True, id="our page"),
        pytest.param({"Origin": "https://chat.example.com"}, True, id="our page by its name"),
        pytest.param({"Sec-Fetch-Site": "same-origin"}, True, id="our page reads"),
        pytest.param({"Sec-Fetch-Site": "none"}, True, id="typed by the user"),
        pytest.param({"Origin": "https://evil.example.com"}, False, id="another site"),
        pytest.param({"Origin": "http://127.0.0.1:1"}, False, id="another port"),
        pytest.param({"Origin": "null"}, False, id="page without origin"),
        pytest.param({"Origin": ""}, False, id="empty origin"),
        pytest.param({"Origin": "http://[::1"}, False, id="origin is no address"),
        pytest.param({"Sec-Fetch-Site": "cross-site"}, False, id="another site reads"),
        pytest.param({"Sec-Fetch-Site": "same-site"}, False, id="a sibling reads"),
    ],
)
@pytest.mark.parametrize(
    ("request_line", "passed"),
    [
        pytest.param("POST /api/chat", 422, id="ask"),
        pytest.param("GET /api/sessions", 200, id="list"),
        pytest.param("DELETE /api/sessions/none", 404, id="delete"),
        pytest.param("OPTIONS /api/chat", 405, id="preflight"),
    ],
)
def test_only_our_own_page_may_use_the_service(
    service: Service, headers: dict[str, str], passes: bool, request_line: str, passed: int
) -> None:
    sent = {name: value.format(own=service.url) for name, value in headers.items()}
    method, path = request_line.split()
    body = QUESTION if method == "POST" else None
    response = service.client.request(method, path, headers=sent, json=body)

    assert response.status_code == (passed if passes else 403)
    assert "access-control-allow-origin" not in response.headers
    if not passes:
        assert response.json()["error"]["code"] == "origin_not_allowed"


@pytest.mark.parametrize("path", ["/", "/page/modules/main.js", "/page/nothing"])
def test_page_may_run_only_its_own_scripts(service: Service, path: str) -> None:
    headers = service.client.get(path).headers

    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("path", ["/api/sessions", "/health", "/api/nothing", "/api/broken"])
def test_data_runs_nothing(service: Service, path: str) -> None:
    headers = service.client.get(path).headers

    assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["cross-origin-resource-policy"] == "same-origin"


def test_routes_of_others_keep_their_manners(service: Service) -> None:
    client = service.client

    found = client.get("/threads/7", headers={"Origin": "https://smith.langchain.com"})
    missing = client.get("/threads/0")
    invalid = client.get("/threads/x")
    large = client.post("/threads", content=b"a" * (BODY_BYTES + 1))

    assert found.json() == {"thread": 7}
    assert "content-security-policy" not in found.headers
    assert missing.json() == {"detail": "no such thread"}
    assert invalid.json()["detail"][0]["loc"] == ["path", "thread"]
    assert large.json() == {"bytes": BODY_BYTES + 1}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({}, 200, id="no browser"),
        pytest.param({"Origin": "{own}"}, 200, id="a page of the server"),
        pytest.param({"Origin": "http://localhost:3000"}, 200, id="an app on this machine"),
        pytest.param({"Origin": "https://smith.langchain.com"}, 200, id="LangGraph Studio"),
        pytest.param({"Origin": "https://eu.smith.langchain.com"}, 200, id="Studio in Europe"),
        pytest.param({"Origin": "https://chat.example.com"}, 200, id="allowed by the settings"),
        pytest.param({"Host": "chat.example.com"}, 200, id="a host allowed by the settings"),
        pytest.param({"Host": "api"}, 200, id="the server speaks to itself"),
        pytest.param({"Origin": "https://evil.example.com"}, 403, id="another site"),
        pytest.param({"Origin": "https://smith.langchain.com.evil.com"}, 403, id="like Studio"),
        pytest.param({"Origin": "https://evilsmith.langchain.com"}, 403, id="beside Studio"),
        pytest.param({"Origin": "http://smith.langchain.com"}, 403, id="Studio without TLS"),
        pytest.param({"Origin": "http://localhost.evil.com"}, 403, id="like this machine"),
        pytest.param({"Origin": "null"}, 403, id="page without origin"),
        pytest.param({"Host": "evil.example.com"}, 421, id="a name that points here"),
        pytest.param({"Host": "192.168.1.5"}, 421, id="address in the network"),
    ],
)
def test_other_web_sites_are_kept_from_the_servers_own_routes(
    service: Service, headers: dict[str, str], status: int
) -> None:
    """A page that somebody visits could begin runs and read threads: nobody signs in."""
    sent = {name: value.format(own=service.url) for name, value in headers.items()}
    for request in ("GET /threads/7", "POST /threads"):
        method, path = request.split()
        response = service.client.request(method, path, headers=sent)

        assert response.status_code == status
        if status != 200:
            assert response.json()["error"]["code"].endswith("_not_allowed")


@pytest.mark.parametrize(
    "path",
    ["/docs", "/redoc", "/openapi.json", "/metrics", "/ok", "/info", "/assistants", "/runs"],
)
def test_names_of_the_langgraph_server_are_free(service: Service, path: str) -> None:
    assert service.client.get(path).json() == {"detail": "Not Found"}


def test_api_describes_itself_without_foreign_assets(service: Service) -> None:
    described = service.client.get("/api/openapi.json").json()

    paths = [path for path in described["paths"] if not path.startswith("/threads")]
    assert all(path.startswith(("/api/", "/health", "/v1/")) for path in paths)
    assert "/api/chat" in paths
    schema = described["components"]["schemas"]["ErrorDetail"]
    assert schema["properties"].keys() == {"code", "message", "retryable", "retry_after"}
