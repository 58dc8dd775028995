import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from chatbot.errors import ModelError
from chatbot.ports import Ports
from graphs.evaluation.cases import Case
from graphs.evaluation.judging import Judge
from graphs.evaluation.patience import Patience
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
    assert [(name, each.difference.value, list(each.better)) for name, each in found] == changes


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


LIMITED = Said(error=ModelError("rate_limit", "slow down", retry_after=0.01))
REFUSED = Said(error=ModelError("auth", "the key is wrong"))
BROKEN = Said(error=ModelError("server", "it failed"))
UNDECIDED = Said(pieces=["Hm."])


def patience(waits: list[float]) -> Patience:
    return Patience(lambda seconds, _: waits.append(seconds), (0.0, 0.0))


@pytest.mark.parametrize(
    ("script", "right", "failed", "waits"),
    [
        pytest.param([LIMITED, LIMITED, CHATS], 1, 0, [0.01, 0.01], id="it is asked again"),
        pytest.param([BROKEN, CHATS], 1, 0, [0], id="also where no time is asked for"),
        pytest.param([BROKEN] * 3, 0, 1, [0, 0], id="a few times"),
        pytest.param([REFUSED], 0, 1, [], id="not where that is of no use"),
        pytest.param([UNDECIDED], 0, 0, [], id="not where the model decided nothing"),
        pytest.param(
            [Said(error=ModelError("rate_limit", "tomorrow", retry_after=600))],
            0, 1, [], id="not where that takes too long",
        ),
    ],
)  # fmt: skip
async def test_what_fails_for_technical_reasons_is_asked_again(
    script: Sequence[Said], right: float, failed: int, waits: Sequence[float]
) -> None:
    case = Case(id="a", question="q", route="general_chat")
    evaluation = Evaluation(about={})
    waited: list[float] = []
    used = ports(script)
    await suite(used, case, patience=patience(waited)).run(evaluation, lambda *_: None)
    assert evaluation.value("route") == right
    assert sum(evaluation.failures("mine").values()) == failed
    assert waited == waits
    assert cast("ScriptedChatModel", used.model).script == []


async def test_a_set_in_which_nothing_works_ends_early_and_the_next_one_begins() -> None:
    cases = [Case(id=f"{n}", question="q", route="general_chat") for n in range(9)]
    searches = [Case(id=f"{n}", question="leave", find=("leave",)) for n in range(3)]
    evaluation = Evaluation(about={})
    used = ports([BROKEN] * 7 + [CHATS] * 9)
    both = Suite(
        sets={"chat": cases, "searches": searches, "more": cases},
        bench=Bench(used),
        patience=patience([]),
        concurrency=1,
    )
    await both.run(evaluation, lambda *_: None)
    # The first case is asked three times, the others of the first five once.
    assert {name: len(results) for name, results in evaluation.sets.items()} == {
        "chat": 5, "searches": 3, "more": 9,
    }  # fmt: skip
    assert evaluation.not_run == {"chat": 4, "searches": 0, "more": 0}
    assert evaluation.given_up == {"chat": "model_server: it failed"}
    assert evaluation.failures("chat") == {"model_server: it failed": 5}
    assert not evaluation.complete
