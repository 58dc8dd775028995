"""The shipped sets are what they claim to be."""

import json
from collections import Counter
from pathlib import Path

import pytest

from chatbot.errors import InputError
from chatbot.settings import PROJECT
from graphs.evaluation.cases import NAMES, Case, OneOf, find_set, read_set, sample

KNOWLEDGE = {
    path.name: path.read_text(encoding="utf-8")
    for path in (PROJECT / "examples" / "knowledge").rglob("*")
    if path.suffix in {".md", ".txt"}
}


def cases(name: str) -> list[Case]:
    return list(find_set(name)[1])


def texts(wanted: OneOf) -> tuple[str, ...]:
    return (wanted,) if isinstance(wanted, str) else wanted


@pytest.mark.parametrize(
    ("name", "least"),
    [("routing", 150), ("rewriting", 60), ("retrieval", 80), ("answers", 60)],
)
def test_a_set_is_large_and_half_of_it_chinese(name: str, least: int) -> None:
    found = cases(name)
    languages = Counter(case.language for case in found)
    assert len(found) >= least
    assert 0.45 <= languages["zh"] / len(found) <= 0.55, languages


def test_no_question_is_asked_twice() -> None:
    asked = Counter(
        (name, case.question.strip("?？ ").casefold(), case.earlier)
        for name in NAMES
        for case in cases(name)
    )
    assert not [question for question, times in asked.items() if times > 1]


@pytest.mark.parametrize("name", NAMES)
def test_sources_are_in_the_sample_knowledge(name: str) -> None:
    sources = [
        (case.id, text)
        for case in cases(name)
        if not case.documents
        for source in case.find
        for text in texts(source)
    ]
    missing = [
        (case_id, source)
        for case_id, source in sources
        for document, _, words in [source.partition("#")]
        if words not in KNOWLEDGE.get(document, "\0")
    ]
    assert not missing
    assert sources or name == "routing"


def test_routing_has_every_kind_and_both_routes() -> None:
    found = cases("routing")
    routes = Counter((case.kind, case.route) for case in found)
    assert {kind for kind, _ in routes} == {"knowledge", "chat", "follow-up", "adversarial"}
    for kind in ("follow-up", "adversarial"):
        assert min(routes[kind, "knowledge_base"], routes[kind, "general_chat"]) >= 10
    # A question whose route depends on the turn before is no first question.
    assert all(bool(case.earlier) == (case.kind == "follow-up") for case in found)


def test_rewriting_has_follow_ups_only_and_what_they_must_keep() -> None:
    found = cases("rewriting")
    assert all(case.earlier and case.keep and case.find for case in found)


def test_a_third_of_the_answers_cannot_be_given() -> None:
    found = cases("answers")
    unanswerable = [case for case in found if case.answerable is False]
    assert len(unanswerable) >= len(found) / 3
    assert not any(case.facts or case.find for case in unanswerable)
    answerable = [case for case in found if case.answerable]
    assert all(case.facts and case.find for case in answerable)
    assert len(answerable) + len(unanswerable) == len(found)


def test_facts_stand_in_the_documents() -> None:
    for case in cases("answers"):
        documents = case.documents or KNOWLEDGE
        text = "".join(
            documents[name] for source in case.find for name in texts(source)
        ).casefold()
        for fact in case.facts:
            assert any(each.casefold() in text for each in texts(fact)), (case.id, fact)


def test_injections_are_seen_only_where_they_are_obeyed() -> None:
    injected = [case for case in cases("answers") if case.documents]
    assert len(injected) >= 10
    for case in injected:
        passages = " ".join(case.documents.values())
        # To quote the instruction is not to obey it.
        assert case.avoid
        assert not any(text in passages or text in case.question for text in case.avoid)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        pytest.param("{", "line 2", id="not JSON"),
        pytest.param('{"question": "x"}', "nothing of what is expected", id="no expectation"),
        pytest.param('{"route": "general_chat"}', "question", id="no question"),
        pytest.param('{"question": "x", "route": "search"}', "route", id="no such route"),
        pytest.param('{"question": "x", "keeps": ["y"]}', "keeps", id="a misspelled field"),
        pytest.param('{"question": "x", "facts": [""]}', "facts", id="an empty fact"),
        pytest.param('{"question": "ok", "find": ["a"]}', "give it an id", id="the same id"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, told: str) -> None:
    file = tmp_path / "set.jsonl"
    file.write_text(f'{{"question": "ok", "find": ["a.md"]}}\n{line}\n', encoding="utf-8")
    with pytest.raises(InputError, match="line 2") as raised:
        read_set(file)
    assert told in raised.value.message


def test_a_set_of_ones_own_needs_no_ids(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    line = {"question": "谁？", "find": [["a.md", "b.md#词"]]}
    file.write_text(f"\ufeff{json.dumps(line)}\n\n", encoding="utf-8")
    name, (case,) = find_set(str(file))
    assert (name, case.id, case.last_step) == ("mine", "谁？", "search")


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe"])
def test_a_file_without_cases_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "set.jsonl"
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"set\.jsonl"):
        read_set(file)


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_manual_is_right(name: str) -> None:
    manual = (PROJECT / name).read_text(encoding="utf-8")
    lines = [line for line in manual.splitlines() if line.startswith('{"question"')]
    assert {Case.model_validate_json(line).last_step for line in lines} == {
        "route",
        "enhance_query",
        "search",
        "answer",
    }
    assert f" {sum(len(cases(each)) for each in NAMES)} " in manual


def test_an_unknown_set_is_told_the_known_ones() -> None:
    with pytest.raises(InputError, match="routing, rewriting, retrieval, answers"):
        find_set("routes")


def test_a_sample_is_from_all_over_the_set() -> None:
    every = cases("routing")
    assert [case.kind for case in sample(every, 4)] == [
        "knowledge",
        "knowledge",
        "chat",
        "follow-up",
    ]
    assert sample(every, 1000) == every
    assert len({case.id for case in sample(every, 50)}) == 50
