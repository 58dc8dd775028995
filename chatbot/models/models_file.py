"""Reads the endpoints of a TOML file, which `MODELS_FILE` names.

[[endpoint]]
model = "qwen-plus"
base_url = "https://dashscope.aliyuncs.com/compatible-mode/v1"
api_key_variable = "DASHSCOPE_API_KEY"   # several keys, separated by commas, take turns
weight = 2                               # gets twice as many calls as an endpoint with 1

[[endpoint]]
model = "Qwen/Qwen3-32B"
base_url = "http://gpu-1:8000/v1"
reasoning_opened = true                  # its prompt template holds the opening <think>
context_window = 32768
"""

import os
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError

from chatbot.errors import ConfigurationError
from chatbot.models.endpoints import PACKAGES, Endpoint, for_each_key
from chatbot.settings import Url
from chatbot.validation import rule_of

MORE = "mcp"  # the other table that this file may hold


def _known_provider(name: str) -> str:
    known = ["openai", "dashscope", *PACKAGES]
    if name not in known:
        message = f"must be one of {', '.join(known)}"
        raise ValueError(message)
    return name


class _EndpointTable(BaseModel):
    """One `[[endpoint]]`."""

    model_config = ConfigDict(extra="forbid")

    model: Annotated[str, Field(min_length=1)]
    name: str = ""
    provider: Annotated[str, AfterValidator(_known_provider)] = "openai"
    base_url: Url | None = None
    api_key: SecretStr | None = None
    api_key_variable: str | None = None
    weight: Annotated[int, Field(ge=1, le=1000)] = 1
    streaming: bool = True
    tools: bool = True
    json_schema: bool = True
    vision: bool | None = None
    reasoning_opened: bool = False
    context_window: Annotated[int, Field(ge=1024)] | None = None


def read_models_file(path: Path) -> Sequence[Endpoint]:
    """Return the endpoints of the file, one for each key.

    Raises:
        ConfigurationError: The file cannot be read, or an entry is wrong. Names both.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        message = f"MODELS_FILE={path} cannot be read: {error.strerror}."
        raise ConfigurationError(message) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        message = f"{path} is not valid TOML: {error}"
        raise ConfigurationError(message) from None
    if unknown := sorted(set(tables) - {"endpoint", MORE}):
        message = f"{path} has an unknown table: {unknown[0]}. Endpoints are [[endpoint]]."
        raise ConfigurationError(message)
    entries = tables.get("endpoint")
    if not isinstance(entries, list) or not entries:
        message = f"{path} has no [[endpoint]]."
        raise ConfigurationError(message)
    endpoints = [
        endpoint
        for number, entry in enumerate(entries, 1)
        for endpoint in _endpoints(_checked(entry, f"{path}, endpoint {number}"))
    ]
    return _with_different_names(endpoints)


def _checked(entry: object, where: str) -> _EndpointTable:
    try:
        table = _EndpointTable.model_validate(entry)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_context=False, include_input=False)[0]
        rule = rule_of(detail)
        if detail["type"] == "extra_forbidden":
            near = get_close_matches(str(detail["loc"][0]), _EndpointTable.model_fields, n=1)
            rule = f"there is no such key. {f'Did you mean {near[0]}?' if near else ''}".strip()
        message = f"{where}: {'.'.join(map(str, detail['loc']))}: {rule}"
        raise ConfigurationError(message) from None
    variable = table.api_key_variable
    if variable is not None and not os.environ.get(variable):
        message = f"{where}: the variable {variable} with the key is not set."
        raise ConfigurationError(message)
    return table


def _endpoints(table: _EndpointTable) -> Sequence[Endpoint]:
    variable = table.api_key_variable
    given = SecretStr(os.environ[variable]) if variable else table.api_key
    endpoint = Endpoint(**table.model_dump(exclude={"api_key", "api_key_variable"}))
    return for_each_key(endpoint, given, variable or "api_key")


def _with_different_names(endpoints: Sequence[Endpoint]) -> Sequence[Endpoint]:
    names = [endpoint.name for endpoint in endpoints]
    if len(set(names)) == len(names):
        return endpoints
    return [
        replace(endpoint, name=f"{number}: {endpoint.name}")
        for number, endpoint in enumerate(endpoints, 1)
    ]
