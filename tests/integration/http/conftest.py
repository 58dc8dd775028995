"""The service of these tests."""

from tests.integration.http.service import (  # noqa: F401 - fixtures
    fresh_service,
    service_of_the_session,
)
