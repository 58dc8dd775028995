"""The service keeps to its own OpenAPI description, whatever it is sent."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.http.workers import workers
from tests.servers.model import Brain

# Not among them: that whatever fits the description is taken. The form of an id, and that
# there is such a conversation, are beyond what it can say.
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")


@pytest.mark.timeout(300)
def test_no_request_brings_an_answer_that_is_not_described(tmp_path: Path) -> None:
    with workers(tmp_path, Brain(answer="25 days.")) as running:
        url = f"{running.clients[0].base_url}/api/openapi.json"
        done = subprocess.run(  # noqa: S603 - the program that our environment installs
            [
                SCHEMATHESIS,
                *("run", url),
                *("--checks", ",".join(CHECKS)),
                *("--phases", "examples,coverage"),
                *("--suppress-health-check", "all"),
                *("--request-timeout", "20"),
                "--generation-deterministic",
                "--no-color",
            ],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert "Tested: " in done.stdout
