"""`/api/sessions`, page by page."""

import httpx

from tests.integration.http.many_sessions import many_sessions


def test_conversations_are_listed_page_by_page() -> None:
    with many_sessions(5) as url, httpx.Client(base_url=url) as client:
        seen: list[str] = []
        query = {"limit": "2"}
        while page := client.get("/api/sessions", params=query).json()["sessions"]:
            seen += [each["session_id"] for each in page]
            query["before"] = page[-1]["cursor"]
        assert seen == ["s4", "s3", "s2", "s1", "s0"]

        refused = client.get("/api/sessions", params={"before": "yesterday"})
    assert refused.status_code == 422
    assert "cursor" in refused.json()["error"]["message"]
