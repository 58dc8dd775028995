"""What pydantic finds wrong, in words for people who have never heard of it."""

import re
from typing import Any

_WHOLE = "must be a whole number"
_NUMBER = "must be a number"
_OBJECT = "must be an object with names and values"
_RULES = {
    "missing": "is missing",
    "extra_forbidden": "is not known here",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "int_parsing": _WHOLE,
    "int_type": _WHOLE,
    "int_from_float": _WHOLE,
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "finite_number": _NUMBER,
    "string_type": "must be text",
    "list_type": "must be a list",
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "dataclass_type": _OBJECT,
}
_SUBJECT = re.compile(r"(?:Input|String|Value|List|Dictionary|Data|Tuple) should\b")


def rule_of(problem: Any) -> str:  # noqa: ANN401 - pydantic's ErrorDetails, or FastAPI's dict
    """Return the rule that a value breaks, such as "must be true or false".

    `problem` is one of a ValidationError's `errors()`. What was given is not repeated.
    """
    if known := _RULES.get(problem["type"]):
        return known
    text = str(problem["msg"]).removeprefix("Value error, ").rstrip(".")
    return _SUBJECT.sub("must", text, count=1)
