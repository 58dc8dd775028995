"""The calls beside the answer: routing, rewriting, summing up."""

import pytest
from pydantic import SecretStr

from chatbot.limits import Limits
from chatbot.models.context_window import ContextWindow
from chatbot.models.extractive import ExtractiveChatModel
from chatbot.models.selection import open_model, select_model
from chatbot.models.tokens import TokenCounter
from chatbot.settings import Settings
from tests.integration.graph.conftest import Bench
from tests.ports import Call, Said
from tests.servers.model import Brain, ChatRequest, ModelServer, Script, hang


async def test_every_call_says_whose_it_is_and_the_answer_alone_has_parameters(
    bench: Bench,
) -> None:
    limits = Limits(router_seconds=10, history_turns=1, summarize=True, prefetch=0)
    window = ContextWindow(counter=TokenCounter("some-model"), tokens=30_000)
    bot = bench.bot_with(window=window, limits=limits)
    look_up, whole, said = (
        Said(call=Call("knowledge_base")),
        Said(["benefits?"]),
        Said(["Tea."]),
    )
    for script in ([look_up, said], [look_up, whole, said], [look_up, whole, said, said]):
        bench.script(*script)
        await bot.ask(
            "benefits", session_id="s", user_id="ann",
            model_parameters={"temperature": 0.1}, stop=["END"],
        )  # fmt: skip
        await bench.background.settle()
    beside, answer = {"user": "ann"}, {"user": "ann", "temperature": 0.1, "stop": ["END"]}
    assert bench.model.options == [
        *(beside, answer),
        *(beside, beside, answer),
        *(beside, beside, answer, beside),
    ]


async def test_an_endpoint_that_hangs_does_not_cost_the_route(bench: Bench) -> None:
    brain = Brain(answers={"hi": "Hello."})

    def reply(request: ChatRequest) -> Script:
        return hang() if request.key == "slow" else brain(request)

    with ModelServer(reply) as server:
        settings = Settings(
            openai_base_url=server.base_url,
            openai_api_key=SecretStr("slow,quick"),
            llm_model="scripted",
        )
        choice = select_model(settings)
        assert choice is not None
        async with open_model(choice, settings) as model:
            limits = Limits(router_seconds=2, prefetch=0)
            answer = await bench.bot_with(model=model, limits=limits).ask("hi")
    assert (answer.text, answer.metadata["degraded"]) == ("Hello.", [])
    assert [request.key for request in server.seen] == ["slow", "quick", "quick"]


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        pytest.param("benefits: leave?", "chose knowledge_base", id="a look-up"),
        pytest.param("hello", "chose general_chat", id="a greeting"),
    ],
)
async def test_without_a_language_model_the_reason_does_not_speak_of_one(
    bench: Bench, question: str, reason: str
) -> None:
    model = ExtractiveChatModel(knowledge_base=bench.knowledge)
    answer = await bench.bot_with(model=model).ask(question)
    assert answer.metadata["reason"] == f"the search scores {reason}"
