"""What the page says: the same in both languages, and with all values in their places."""

import re
from pathlib import Path

import pytest

import serving

MODULES = Path(serving.__file__).parent / "page" / "modules"
SOURCES = {
    path.relative_to(MODULES).as_posix(): path.read_text("utf-8")
    for path in sorted(MODULES.rglob("*.js"))
}
ENTRY = re.compile(r'^  (\w+): "(.*)",$', re.MULTILINE)
CALL = re.compile(r"\b(?:say|words|label)\(")


def table(name: str) -> dict[str, set[str]]:
    """Return the keys of a language, with the places that their texts have."""
    entries = ENTRY.findall(SOURCES[f"words/{name}.js"])
    return {key: set(re.findall(r"\{(\w+)\}", text)) for key, text in entries}


PLACES = {key: places for key, places in table("en").items() if places}


def calls() -> list[str]:
    """Return what stands between the brackets of every call that says something."""
    found = []
    for name, source in SOURCES.items():
        if name == "words/language.js":
            continue
        for begun in CALL.finditer(source):
            depth, end = 1, begun.end()
            while depth:
                depth += {"(": 1, ")": -1}.get(source[end], 0)
                end += 1
            found.append(source[begun.end() : end - 1])
    return found


def said_in(key: str, arguments: str) -> bool:
    """Tell whether the call may say it; `begun${...}` may become any key that begins so."""
    begun = re.findall(r"`(\w+)\$\{", arguments)
    return f'"{key}"' in arguments or any(map(key.startswith, begun))


def test_both_languages_have_the_same_keys_and_places() -> None:
    assert len(table("en")) > 100
    assert table("en") == table("zh")


@pytest.mark.parametrize("key", PLACES)
def test_what_has_places_is_said_with_all_its_values(key: str) -> None:
    found = [arguments for arguments in calls() if said_in(key, arguments)]

    assert found
    for arguments in found:
        values = arguments[arguments.rindex("{") :] if "{" in arguments else ""
        for place in PLACES[key]:
            assert re.search(rf"\b{place}\b", values), f"{place} is not in: {arguments}"
