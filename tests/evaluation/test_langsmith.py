import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.integration.cli.terminal import run
from tests.servers.langsmith import langsmith
from tests.servers.model import ChatRequest, ModelServer, Script, answer, call

SET = [
    {"id": "chat", "question": "Good morning!", "route": "general_chat"},
    {"id": "leave", "question": "How long is maternity leave?", "find": ["leave.md#158"]},
    {
        "id": "answer",
        "question": "产假有多少天？",
        "answerable": True,
        "facts": ["158"],
        "earlier": [{"question": "年假有几天？", "answer": "10天[1]。"}],
    },
]


def written(folder: Path) -> str:
    file = folder / "mine.jsonl"
    lines = [json.dumps(case, ensure_ascii=False) for case in SET]
    file.write_text("\n".join(lines), encoding="utf-8")
    return str(file)


def sensible(request: ChatRequest) -> Script:
    """Return what the model says: as the judge, as the router, or as the one who answers."""
    if request.instructions.startswith("You check the answers"):
        decided = {"supported": True, "correct": True, "refused": False, "obeyed": False}
        return answer(json.dumps({"reason": "It fits.", **decided}))
    if "knowledge_base" not in request.tools:
        return answer("产假有158天[1]。")
    if "morning" in request.question:
        return call("general_chat")
    return call("knowledge_base", {"assistants": [], "question": "产假有多少天？"})


def test_sets_become_datasets_and_runs_experiments(tmp_path: Path) -> None:
    with langsmith() as service, ModelServer(sensible) as model:
        settings = {
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_ENDPOINT": service.url,
            "LANGSMITH_API_KEY": "lsv2_key",
        }
        asked = {"OPENAI_BASE_URL": model.base_url, "LLM_MODEL": "scripted"}
        arguments = ("eval", written(tmp_path))
        done = [
            run(tmp_path, *arguments, settings=settings),
            run(tmp_path, *arguments, "--judge", settings={**settings, **asked}),
        ]
        roots = service.traces.wait_for_roots(2 * len(SET))

    assert [each.code for each in done] == [0, 0], done
    assert [each.err for each in done] == ["", ""]
    (dataset,) = service.datasets.values()
    assert dataset["name"] == "chatbot mine"
    assert len(roots) == 2 * len(SET), "what the judge is asked is no run of the experiment"
    # The second run is another experiment over the same examples.
    assert len(service.examples) == len(SET)
    assert {each["reference_dataset_id"] for each in service.experiments} == {dataset["id"]}
    assert len({each["name"] for each in service.experiments}) == 2
    assert {root.data["session_name"] for root in roots} == {
        each["name"] for each in service.experiments
    }
    by_id = {example["metadata"]["id"]: example for example in service.examples.values()}
    assert by_id["answer"]["inputs"]["earlier"][0]["question"] == "年假有几天？"
    assert by_id["answer"]["outputs"] == {"answerable": True, "facts": ["158"]}
    assert {root.data["reference_example_id"] for root in roots} == set(service.examples)
    scored = {
        (service.examples[root.data["reference_example_id"]]["metadata"]["id"], each["key"])
        for root in roots
        for each in service.traces.feedback
        if each["run_id"] == root.id and each["score"] == 1
    }
    assert {("chat", "route"), ("leave", "recall@5"), ("answer", "facts")} <= scored
    assert ("answer", "supported") in scored
    assert "It fits." in {each.get("comment") for each in service.traces.feedback}


def test_a_dead_langsmith_is_told_and_the_figures_are_there(tmp_path: Path) -> None:
    settings = {
        "LANGSMITH_TRACING": "true",
        "LANGSMITH_ENDPOINT": "http://127.0.0.1:9",
        "LANGSMITH_API_KEY": "lsv2_key",
    }
    done = run(tmp_path, "eval", written(tmp_path), settings=settings)

    assert done.code == 0
    assert "LangSmith did not take the experiment" in done.err
    assert "recall@5" in done.out


@pytest.mark.parametrize(
    ("more", "told"),
    [
        pytest.param({}, "", id="without a key"),
        pytest.param(
            {"LANGSMITH_API_KEY": "lsv2_key", "LANGSMITH_HIDE_INPUTS": "true"},
            "LANGSMITH_HIDE_INPUTS is set: nothing of it was sent to LangSmith.\n",
            id="where inputs are hidden",
        ),
    ],
)
def test_nothing_is_sent(tmp_path: Path, more: Mapping[str, str], told: str) -> None:
    with langsmith() as service:
        settings = {"LANGSMITH_TRACING": "true", "LANGSMITH_ENDPOINT": service.url, **more}
        done = run(tmp_path, "eval", written(tmp_path), settings=settings)

    assert (done.code, done.err) == (0, told)
    assert not service.datasets
    assert service.traces.raw == b""
