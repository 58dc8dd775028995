"""API keys: made, read back, expired, revoked; and a folder that is not one of keys."""

import json
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chatbot.errors import ConfigurationError, InputError
from serving.auth.keys import create_key, read_keys, revoke_key

NOW = datetime.now(UTC)


def test_a_key_is_found_and_kept_as_a_hash_alone(tmp_path: Path) -> None:
    key = create_key(tmp_path, "李雷", assistants=["Handbook"])

    found = read_keys(tmp_path).find(key, NOW)

    assert found is not None
    assert (found.user, found.assistants) == ("李雷", ("Handbook",))
    (file,) = tmp_path.iterdir()
    assert key.rsplit("_", 1)[-1] not in file.read_text(encoding="utf-8")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda key: key[:-1], id="cut"),
        pytest.param(lambda key: key + "x", id="longer"),
        pytest.param(lambda key: key.swapcase(), id="other letters"),
        pytest.param(lambda key: key.rsplit("_", 1)[0] + "_", id="without its secret"),
        pytest.param(lambda key: key.replace("cb_", "sk_"), id="another prefix"),
        pytest.param(lambda _: "", id="nothing"),
        pytest.param(lambda _: "cb__", id="a prefix alone"),
        pytest.param(lambda _: "\ud800", id="half a character"),
    ],
)
def test_what_is_not_quite_the_key_is_not_found(
    tmp_path: Path, change: Callable[[str], str]
) -> None:
    key = create_key(tmp_path, "ann")
    assert read_keys(tmp_path).find(change(key), NOW) is None


def test_a_key_ends_at_its_time(tmp_path: Path) -> None:
    key = create_key(tmp_path, "ann", expires=NOW + timedelta(hours=1))
    keys = read_keys(tmp_path)
    assert keys.find(key, NOW + timedelta(minutes=59)) is not None
    assert keys.find(key, NOW + timedelta(minutes=61)) is None


def test_a_key_that_is_revoked_is_gone_and_the_others_stay(tmp_path: Path) -> None:
    first, second = create_key(tmp_path, "ann"), create_key(tmp_path, "bob")
    key_id = first.split("_")[1]

    revoked = revoke_key(tmp_path, key_id)

    assert revoked is not None
    assert revoked.user == "ann"
    assert revoke_key(tmp_path, key_id) is None
    assert revoke_key(tmp_path, "../../etc/passwd") is None
    keys = read_keys(tmp_path)
    assert keys.find(first, NOW) is None
    assert keys.find(second, NOW) is not None


@pytest.mark.parametrize("user", ["", "a b", "x" * 201, "a\nb"])
def test_a_user_has_the_form_of_an_id(tmp_path: Path, user: str) -> None:
    with pytest.raises(InputError, match="user id"):
        create_key(tmp_path, user)


def test_a_key_is_not_made_for_the_past(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expired"):
        create_key(tmp_path, "ann", expires=NOW - timedelta(seconds=1))


def test_without_a_folder_there_are_no_keys(tmp_path: Path) -> None:
    assert read_keys(tmp_path / "none").by_id == {}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param("no json", "Invalid JSON", id="not JSON"),
        pytest.param("{}", "is missing", id="no key"),
        pytest.param(
            json.dumps({"id": "a", "user": "a b", "sha256": "0", "created": NOW.isoformat()}),
            "user id",
            id="a user that is no id",
        ),
    ],
)
def test_a_file_that_is_no_key_is_named(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / "broken.json").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=told) as caught:
        read_keys(tmp_path)
    assert "broken.json" in caught.value.message
