from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from chatbot.validation import rule_of


class Inner(BaseModel):
    name: str


class Form(BaseModel):
    model_config = ConfigDict(extra="forbid")

    flag: bool = False
    count: Annotated[int, Field(ge=1)] = 1
    share: float = 0.5
    names: list[str] = []
    word: Annotated[str, Field(max_length=3)] = ""
    inner: Inner = Inner(name="x")
    kind: str = "a"

    @field_validator("kind")
    @classmethod
    def _kind(cls, value: str) -> str:
        if value != "a":
            message = "kind is a."
            raise ValueError(message)
        return value


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"flag": "perhaps"}, "must be true or false"),
        ({"count": "many"}, "must be a whole number"),
        ({"count": 1.5}, "must be a whole number"),
        ({"count": 0}, "must be greater than or equal to 1"),
        ({"share": "half"}, "must be a number"),
        ({"names": 1}, "must be a list"),
        ({"names": [1]}, "must be text"),
        ({"word": "四个汉字"}, "must have at most 3 characters"),
        ({"inner": {}}, "is missing"),
        ({"inner": 1}, "must be an object with names and values"),
        ({"flags": True}, "is not known here"),
        ({"kind": "b"}, "kind is a"),
    ],
)
def test_a_rule_is_told_in_words_for_people(given: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Form.model_validate(given)
    assert rule_of(raised.value.errors()[0]) == rule
