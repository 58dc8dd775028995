from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from chatbot.ports import SessionStore
from tests.integration.history.stores import (
    Opener,
    cut_off,
    in_both,
    in_file,
    in_memory,
    in_mongodb,
)
from tests.servers.mongod import Mongod


@pytest.fixture(
    params=[
        pytest.param(in_mongodb, id="MongoDB"),
        pytest.param(in_file, id="file"),
        pytest.param(in_memory, id="memory"),
        pytest.param(in_both, id="MongoDB with a file"),
        pytest.param(cut_off, id="file with MongoDB away"),
    ]
)
async def history(
    request: pytest.FixtureRequest, mongod: Mongod, tmp_path: Path
) -> AsyncIterator[SessionStore]:
    """Every store that keeps the contract, one after the other."""
    opener: Opener = request.param
    async with opener(mongod, tmp_path) as store:
        yield store
