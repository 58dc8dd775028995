"""API keys: made here, kept as hashes in a folder of small files, one for each key."""

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from chatbot.domain import checked_id
from chatbot.errors import ConfigurationError, InputError
from chatbot.validation import rule_of

PREFIX = "cb"
ID_BYTES = 6
SECRET_BYTES = 32


class ApiKey(BaseModel):
    """A key without its secret. `sha256` is of the whole key, which is random: no salt needed.

    `assistants` names the only ones it may ask; none means all.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    user: str
    sha256: str
    assistants: tuple[str, ...] | None = None
    created: AwareDatetime
    expires: AwareDatetime | None = None

    def expired(self, now: datetime) -> bool:
        """Return whether it is not valid any more."""
        return self.expires is not None and self.expires <= now


@dataclass(frozen=True, slots=True)
class ApiKeys:
    """The keys of one moment, by their ids."""

    by_id: Mapping[str, ApiKey]

    def find(self, key: str, now: datetime) -> ApiKey | None:
        """Return the key that this text is, or nothing if there is none or it has expired."""
        prefix, _, rest = key.partition("_")
        known = self.by_id.get(rest.partition("_")[0]) if prefix == PREFIX else None
        if known is None or known.expired(now):
            return None
        return known if hmac.compare_digest(known.sha256, _hash(key)) else None


def read_keys(folder: Path) -> ApiKeys:
    """Return the keys in the folder; without a folder there are none.

    Raises:
        ConfigurationError: A file in it cannot be used.
    """
    try:
        keys = [_read(path) for path in sorted(folder.glob("*.json"))]
    except OSError as error:
        message = f"AUTH_KEYS_DIR: {folder} cannot be read: {error.strerror}."
        raise ConfigurationError(message) from None
    return ApiKeys({key.id: key for key in keys if key is not None})


def create_key(
    folder: Path,
    user: str,
    *,
    assistants: Sequence[str] | None = None,
    expires: datetime | None = None,
) -> str:
    """Add a key for the user and return it: it is kept nowhere else, and not shown again.

    Raises:
        InputError: The user's name has not the form of an id, or the key has expired already.
        ConfigurationError: The folder cannot be written.
    """
    checked_id(user, "user id", slash=True)
    if expires is not None and expires <= datetime.now(UTC):
        message = "The key would have expired already: name a time to come."
        raise InputError(message)
    key_id = secrets.token_hex(ID_BYTES)
    key = f"{PREFIX}_{key_id}_{secrets.token_urlsafe(SECRET_BYTES)}"
    added = ApiKey(
        id=key_id,
        user=user,
        sha256=_hash(key),
        assistants=None if assistants is None else tuple(assistants),
        created=datetime.now(UTC),
        expires=expires,
    )
    text = added.model_dump_json(exclude_none=True, indent=2)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Whole or not at all: whoever reads the folder meanwhile sees no half a key.
        new = folder / f".{key_id}.new"
        new.touch(mode=0o600, exist_ok=False)
        new.write_text(f"{text}\n", encoding="utf-8")
        new.replace(folder / f"{key_id}.json")
    except OSError as error:
        message = f"AUTH_KEYS_DIR: {folder} cannot be written: {error.strerror}."
        raise ConfigurationError(message) from None
    return key


def revoke_key(folder: Path, key_id: str) -> ApiKey | None:
    """Remove a key and return it, or nothing if there is none of this id.

    Raises:
        ConfigurationError: The folder cannot be used.
    """
    found = read_keys(folder).by_id.get(key_id)
    if found is not None:
        try:
            (folder / f"{key_id}.json").unlink(missing_ok=True)
        except OSError as error:
            message = f"AUTH_KEYS_DIR: {folder} cannot be written: {error.strerror}."
            raise ConfigurationError(message) from None
    return found


def _read(path: Path) -> ApiKey | None:
    try:
        key = ApiKey.model_validate_json(path.read_bytes())
        checked_id(key.user, "user id", slash=True)
    except FileNotFoundError:  # revoked between the listing and the reading
        return None
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, problem["loc"])) or "the file"
        message = f"AUTH_KEYS_DIR: {path} is not a key: {where}: {rule_of(problem)}."
        raise ConfigurationError(message) from None
    except InputError as error:
        message = f"AUTH_KEYS_DIR: {path}: {error.message}"
        raise ConfigurationError(message) from None
    return key


def _hash(key: str) -> str:
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()
