"""What is named and does not exist is said, on stderr and by the exit code."""

from pathlib import Path

import pytest

from chatbot.settings import Settings
from graphs.synchronous import open_chatbot_sync
from tests.integration.cli.examined import DEAD
from tests.integration.cli.terminal import run

AWAY = {"MONGODB_URI": f"mongodb://{DEAD}"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["sessions", "show", "湖"], "There is no session 湖", id="show"),
        pytest.param(["sessions", "show", "湖", "--json"], "no session 湖", id="show as JSON"),
        pytest.param(["sessions", "show", "of-ann"], "no session of-ann", id="another user's"),
        pytest.param(["sessions", "clear", "湖", "--yes"], "no session 湖", id="clear"),
        pytest.param(["sessions", "delete", "湖", "--yes"], "no session 湖", id="delete"),
        pytest.param(["sessions", "export", "湖"], "no session 湖", id="export"),
        pytest.param(["sessions", "rename", "湖", "x"], "no session 湖", id="rename"),
        pytest.param(["why"], "no such turn", id="why of nothing"),
        pytest.param(["why", "7", "--json"], "no such turn", id="why as JSON"),
        pytest.param(["why", "--session", "湖"], "no such turn", id="why in no session"),
        pytest.param(["why", "7", "--session", "湖"], "no such turn", id="why of no turn"),
        pytest.param(["knowledge", "search", "?", "-a", "湖"], "no assistant", id="search"),
        pytest.param(["keys", "revoke", "湖"], "no key 湖", id="revoke"),
        pytest.param(["eval", "湖"], "no set 湖", id="set of questions"),
    ],
)
def test_what_does_not_exist(tmp_path: Path, arguments: list[str], words: str) -> None:
    settings = Settings(chatbot_data_dir=tmp_path)
    with open_chatbot_sync(settings) as bot:
        bot.ask("Hello!", session_id="of-ann", user_id="ann")

    result = run(tmp_path, *arguments, settings={"AUTH_KEYS_DIR": str(tmp_path / "keys")})

    assert (result.code, result.out) == (2, "")
    assert words in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["sessions", "list"], id="sessions"),
        pytest.param(["sessions", "search", "湖"], id="turns"),
        pytest.param(["sessions", "clear", "--all", "--yes"], id="all that there are"),
        pytest.param(["feedback"], id="feedback"),
        pytest.param(["knowledge", "search", "Zxqvw"], id="passages"),
    ],
)
def test_a_list_may_be_empty(tmp_path: Path, arguments: list[str]) -> None:
    assert run(tmp_path, *arguments).code == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        pytest.param(["sessions", "show", "s"], 1, "nobody knows", id="show"),
        pytest.param(["sessions", "rename", "s", "x"], 1, "nobody knows", id="rename"),
        pytest.param(["why", "--session", "s"], 1, "nobody knows", id="why of the last turn"),
        pytest.param(["why", "7"], 1, "nobody knows", id="why"),
        pytest.param(["sessions", "clear", "s", "-y"], 0, "is forgotten then", id="clear"),
    ],
)
def test_while_mongodb_is_away_nothing_is_said_to_be_missing(
    tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    result = run(tmp_path, *arguments, settings=AWAY)

    assert result.code == code
    assert words in result.err
    assert "There is no" not in result.err


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["sessions", "list"], id="sessions"),
        pytest.param(["feedback", "--json"], id="feedback"),
    ],
)
def test_while_mongodb_is_away_a_list_says_that_it_need_not_be_all(
    tmp_path: Path, arguments: list[str]
) -> None:
    result = run(tmp_path, *arguments, settings=AWAY)

    assert result.code == 0
    assert "Only what this machine has kept is shown." in result.err
    assert "0 changes" not in result.err
