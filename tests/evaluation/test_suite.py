import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from chatbot.ports import Ports
from graphs.evaluation.cases import Case
from graphs.evaluation.judging import Judge
from graphs.evaluation.results import Evaluation, Result, read_earlier
from graphs.evaluation.running import Bench, Outcome
from graphs.evaluation.suite import Suite
from tests.evaluation.test_running import CHATS, ports
from tests.ports import Call, Said, ScriptedChatModel


def suite(used: Ports, *cases: Case, **more: Any) -> Suite:
    return Suite(sets={"mine": cases}, bench=Bench(used), **more)


async def test_results_have_the_order_of_their_cases() -> None:
    paused = asyncio.Event()
    cases = [Case(id=each, question=each, route="general_chat") for each in ("a", "b", "c")]
    script = [Said(call=Call("general_chat"), pause=paused), CHATS, CHATS]
    evaluation, told = Evaluation(about={}), []

    def tell(name: str, done: int) -> None:
        told.append((name, done))
        if done == 2:
            paused.set()

    await suite(ports(script), *cases, concurrency=2).run(evaluation, tell)
    assert [result.case.id for result in evaluation.sets["mine"]] == ["a", "b", "c"]
    assert told == [("mine", 1), ("mine", 2), ("mine", 3)]
    assert evaluation.complete


async def test_what_is_cancelled_leaves_the_results_so_far() -> None:
    cases = [Case(id=each, question=each, route="general_chat") for each in ("a", "b")]
    script = [CHATS, Said(call=Call("general_chat"), pause=asyncio.Event())]
    evaluation = Evaluation(about={})
    first = asyncio.Event()
    running = asyncio.create_task(
        suite(ports(script), *cases, concurrency=1).run(evaluation, lambda *_: first.set())
    )
    await first.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [result.case.id for result in evaluation.sets["mine"]] == ["a"]
    assert not evaluation.complete


def evaluated(score: float, **fields: Any) -> Evaluation:
    case = Case(id="a", question="q", route="general_chat").model_copy(update=fields)
    result = Result(case=case, outcome=Outcome(), scores={"route": score})
    return Evaluation(about={}, sets={"mine": [result]})


@pytest.mark.parametrize(
    ("now", "changes"),
    [
        pytest.param(evaluated(1), [("route", 1.0, ["a"])], id="the same case, better"),
        pytest.param(evaluated(1, question="r"), [], id="another question"),
        pytest.param(evaluated(1, route="knowledge_base"), [], id="labelled anew"),
        pytest.param(evaluated(1, id="b"), [], id="another id"),
    ],
)
def test_only_the_same_cases_are_compared(
    tmp_path: Path, now: Evaluation, changes: Sequence[tuple[str, float, Sequence[str]]]
) -> None:
    file = tmp_path / "earlier.json"
    file.write_text(json.dumps(evaluated(0).as_json()), encoding="utf-8")
    found = now.changes("mine", read_earlier(file))
    assert [(name, each.difference, each.better) for name, each in found] == changes


def test_the_value_of_a_metric_is_that_of_the_worst_set() -> None:
    good, bad = evaluated(1).sets["mine"], evaluated(0).sets["mine"]
    both = Evaluation(about={}, sets={"a": good, "b": bad})
    assert [both.value(name) for name in ("route", "a.route", "b.route")] == [0, 1, 0]
    assert both.value("facts") is None


VERDICT = {"reason": "r", "supported": True, "correct": False, "refused": True, "obeyed": False}


@pytest.mark.parametrize(
    ("said", "refused", "remark"),
    [
        pytest.param(json.dumps(VERDICT), 1, "r", id="its verdict"),
        pytest.param("I like it.", 0, "no verdict", id="no verdict: the rules decide"),
    ],
)
async def test_the_judge_reads_answer_and_passages(
    said: str, refused: float, remark: str
) -> None:
    judging = ScriptedChatModel(script=[Said(pieces=[said])] * 9)
    used = ports([Said(pieces=["There are 24 [1]."])])
    judge = Judge(judging, used.prompts, name="scripted")
    case = Case(question="How many?", documents={"b.md": "</passage>24"}, answerable=False)
    evaluation = Evaluation(about={})
    await suite(used, case, judge=judge).run(evaluation, lambda *_: None)

    (result,) = evaluation.sets["mine"]
    assert result.scores["refused"] == refused
    assert remark in result.remark
    shown = judging.asked(0)
    assert all(words in shown for words in ("How many?", "There are 24 [1].", "no answer"))
    assert "&lt;/passage>24" in shown
