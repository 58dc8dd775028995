"""Every setting: its variable, its default, what it must be, and where its value came from."""

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from dotenv import dotenv_values
from pydantic import (
    AfterValidator,
    AliasGenerator,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    field_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict

from chatbot.domain import ANONYMOUS, Intent, checked_id
from chatbot.errors import ConfigurationError, InputError
from chatbot.spelling import misspelled
from chatbot.traces.variables import aliases, as_given, hand_over, known_names
from chatbot.validation import rule_of

logger = logging.getLogger(__name__)

PROJECT = Path(__file__).resolve().parent.parent
FILES = (".env.local", ".env")
MEMORY = ":memory:"  # as a folder: nothing is written on the local disk


def _http_address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        message = "must be an address that begins with http:// or https://"
        raise ValueError(message)
    return value.rstrip("/")


def _mongodb_name(value: str) -> str:
    if not 0 < len(value.encode()) <= NAME_BYTES or set(value) & set('/\\. "$*<>:|?\0'):
        message = f'must be 1 to {NAME_BYTES} bytes without spaces or any of /\\."$*<>:|?'
        raise ValueError(message)
    return value


NAME_BYTES = 63  # MongoDB's limit for the name of a database
Seconds = Annotated[float, Field(gt=0, le=3600)]
Url = Annotated[str, AfterValidator(_http_address)]
Name = Annotated[str, AfterValidator(_mongodb_name)]


class Settings(BaseSettings):
    """The settings of one process. Made by entry points alone, with `Settings.load`.

    A field is set by the variable of the same name in capitals; an empty variable counts as
    unset. Relative paths stand below the folder that holds `.env`.
    """

    model_config = SettingsConfigDict(
        frozen=True,
        extra="ignore",
        env_ignore_empty=True,
        case_sensitive=False,
        alias_generator=AliasGenerator(validation_alias=aliases),
    )

    chatbot_data_dir: Path = Path(".chatbot")
    prompts_dir: Path | None = None

    mongodb_uri: SecretStr | None = None
    mongodb_db: Name = "chatbot"
    mongodb_collection: Name = "chat_history"
    mongodb_owner: str = ANONYMOUS
    session_ttl_days: Annotated[float, Field(gt=0, le=36500)] = 30
    default_session_id: str = "default"
    history_turns: Annotated[int, Field(ge=0, le=200)] = 20
    summarize_history: bool = False

    llm_model: str | None = None
    llm_temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    dashscope_api_key: SecretStr | None = None
    dashscope_base_url: Url = "https://dashscope.aliyuncs.com/compatible-mode/v1"
    openai_api_key: SecretStr | None = None
    openai_base_url: Url | None = None
    models_file: Path | None = None
    context_window: Annotated[int, Field(ge=1024)] | None = None
    output_tokens: Annotated[int, Field(ge=1)] | None = None
    tools: str = ""
    image_hosts: str = ""
    image_private_hosts: str = ""
    image_megabytes: Annotated[float, Field(gt=0, le=12)] = 5
    images_per_question: Annotated[int, Field(ge=0, le=16)] = 4

    ragflow_api_key: SecretStr | None = None
    ragflow_base_url: Url | None = None
    ragflow_mode: Literal["retrieval", "assistant", "answer"] = "retrieval"
    knowledge_dir: Path = Path("examples/knowledge")
    embedding_base_url: Url | None = None
    embedding_model: str | None = None
    embedding_api_key: SecretStr | None = None
    embedding_threshold: Annotated[float, Field(ge=-1, le=1)] = 0.5
    passages: Annotated[int, Field(ge=1, le=30)] = 6
    route_early: bool = True
    prefetch: Annotated[int, Field(ge=0, le=10)] = 3
    head_start: bool = True
    route_default: Intent = "general_chat"

    turn_timeout_seconds: Seconds = 120
    session_wait_seconds: Seconds = 20
    router_timeout_seconds: Seconds = 15
    knowledge_timeout_seconds: Seconds = 15
    first_token_timeout_seconds: Seconds = 30
    token_timeout_seconds: Seconds = 30

    allowed_hosts: str = ""

    auth_keys_dir: Path | None = None
    jwt_secret: SecretStr | None = None
    jwt_jwks_file: Path | None = None
    jwt_issuer: str | None = None
    jwt_audience: str | None = None
    jwt_user_claim: str = "sub"
    jwt_assistants_claim: str = "assistants"
    operators: str = ""
    turns_per_minute: Annotated[int, Field(ge=0)] = 30
    turns_at_once: Annotated[int, Field(ge=0)] = 4
    open_streams: Annotated[int, Field(ge=1)] = 1000
    question_characters: Annotated[int, Field(ge=1, le=200_000)] = 100_000

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["text", "json"] = "text"
    log_questions: bool = False

    langsmith_tracing: bool = False
    langsmith_hide_inputs: bool = False
    langsmith_hide_outputs: bool = False
    langsmith_hide_metadata: bool = False
    langsmith_tracing_sampling_rate: Annotated[float, Field(ge=0, le=1)] | None = None

    _root: Path = PrivateAttr(default=PROJECT)
    _sources: dict[str, str] = PrivateAttr(default_factory=dict)
    _misspelled: list[str] = PrivateAttr(default_factory=list)

    @field_validator("default_session_id")
    @classmethod
    def _check_session_id(cls, value: str) -> str:
        try:
            return checked_id(value, "session id")
        except InputError as error:
            raise ValueError(error.message) from None

    @field_validator("mongodb_owner")
    @classmethod
    def _check_user_id(cls, value: str) -> str:
        try:
            return checked_id(value, "user id", slash=True)
        except InputError as error:
            raise ValueError(error.message) from None

    @field_validator("ragflow_base_url")
    @classmethod
    def _check_ragflow_address(cls, value: str | None) -> str | None:
        if value is not None and "@" in urlsplit(value).netloc:
            message = "must not name a user: RAGFlow is given RAGFLOW_API_KEY, nothing else"
            raise ValueError(message)
        return value

    @field_validator("mongodb_uri")
    @classmethod
    def _check_mongodb_address(cls, value: SecretStr | None) -> SecretStr | None:
        # The driver takes a bare word for the name of a host, which is then away for ever.
        schemes = ("mongodb://", "mongodb+srv://")
        if value is not None and not value.get_secret_value().startswith(schemes):
            message = "must begin with mongodb:// or mongodb+srv://"
            raise ValueError(message)
        return value

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper_case(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value

    @classmethod
    def load(cls, folder: Path | None = None) -> Self:
        """Read `.env` and `.env.local` into the process environment, then the environment.

        A variable that the process already has stays as it is; `.env.local` goes before `.env`.
        The files stand in `folder`, else in the current folder, else in the project's.

        Raises:
            ConfigurationError: A value is wrong. Names the variable, its rule, its source.
        """
        root = folder or _folder_of_settings()
        sources = {name.upper(): "the environment" for name in os.environ}
        places = [[name.upper() for name, value in os.environ.items() if value]]
        for name in FILES:
            values = _read(root / name)
            places.append([name.upper() for name, value in values.items() if value])
            for variable, value in values.items():
                if variable.upper() not in sources:
                    os.environ[variable] = value
                    sources[variable.upper()] = str(root / name)
        try:
            settings = cls()
        except ValidationError as error:
            raise ConfigurationError(_explain(error, sources)) from None
        settings._root = root
        settings._sources = sources
        hand_over(settings, sources)
        known = {name.upper() for name in cls.model_fields} | known_names(cls.model_fields)
        settings._misspelled = [
            f"{name} (from {sources[name]}) is no setting. Did you mean {meant}?"
            for name, meant in misspelled(places, known).items()
        ]
        for sentence in settings._misspelled:
            logger.warning(sentence)
        return settings

    @property
    def misspelled(self) -> Sequence[str]:
        """A sentence about each variable that is almost a setting, and therefore not read."""
        return self._misspelled

    @property
    def hosts(self) -> frozenset[str]:
        """The host names that are served beside those of this machine."""
        return frozenset(self.allowed_hosts.lower().replace(",", " ").split())

    @property
    def operator_names(self) -> frozenset[str]:
        """The users who see metrics and everybody's feedback."""
        return frozenset(self.operators.replace(",", " ").split())

    def path(self, path: Path) -> Path:
        """Return `path` as an absolute one, below the folder of the settings if relative."""
        return (self._root / path.expanduser()).resolve()

    @property
    def data_dir(self) -> Path | None:
        """The folder of all that is written on the local disk, or none for `:memory:`."""
        if str(self.chatbot_data_dir) == MEMORY:
            return None
        return self.path(self.chatbot_data_dir)

    def source(self, field: str) -> str:
        """Return where the value of `field` was read."""
        if not os.environ.get(field.upper()):
            return "default"
        return self._sources.get(field.upper(), "the environment")


def _folder_of_settings() -> Path:
    current = Path.cwd()
    return current if any((current / name).is_file() for name in FILES) else PROJECT


def _read(path: Path) -> Mapping[str, str]:
    if not path.is_file():
        return {}
    try:
        values = dotenv_values(path, interpolate=False, encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        message = f"{path} cannot be read as UTF-8 text: {error}"
        raise ConfigurationError(message) from None
    return {name: value for name, value in values.items() if value is not None}


def _explain(error: ValidationError, sources: Mapping[str, str]) -> str:
    lines = []
    for detail in error.errors(include_url=False, include_context=False):
        variable = as_given(str(detail["loc"][0]).upper())
        shown = _shown(variable, detail.get("input"))
        source = sources.get(variable, "the environment")
        lines.append(f"{variable}{shown} (from {source}): {rule_of(detail)}")
    return "\n".join(lines)


def _shown(variable: str, value: Any) -> str:  # noqa: ANN401 - whatever was given
    secret = variable.endswith(("_KEY", "_URI", "_URL", "_SECRET"))
    return "" if secret else f"={value!r}"
