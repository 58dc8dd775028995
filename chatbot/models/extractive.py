"""A chat model without a language model: it routes by retrieval and answers by quoting."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, ClassVar

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import ConfigDict, PrivateAttr, SkipValidation

from chatbot.models.extractive_answering import answer
from chatbot.models.extractive_routing import Dialogue
from chatbot.ports import KnowledgeBase

MODEL_NAME = "extractive"
LOOK_UP = "knowledge_base"
CHAT = "general_chat"


class ExtractiveChatModel(BaseChatModel):
    """Answers with the best sentences of the passages, and says how to set a language model.

    It is called like any other model. Offered the tools `knowledge_base` and `general_chat`, it
    decides by what the knowledge base finds. The message to answer carries `passages`,
    `question`, `outcome` and the names of the `assistants` that may be asked in its
    `additional_kwargs`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    knowledge_base: SkipValidation[KnowledgeBase]
    decides: ClassVar[str] = "the search scores chose"  # how a route came about, for people
    _dialogue: Dialogue = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:  # noqa: ANN401 - pydantic's signature
        """Set up the reading of conversations."""
        super().model_post_init(context)
        self._dialogue = Dialogue(self.knowledge_base)

    @property
    def _llm_type(self) -> str:
        return MODEL_NAME

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": MODEL_NAME}

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer tools; the two of the router are the ones it can call."""
        del tool_choice
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> AsyncIterator[ChatGenerationChunk]:
        del stop, run_manager  # LangChain's own streaming reports each chunk
        offered = {
            tool["function"]["name"]: tool["function"] for tool in kwargs.get("tools") or ()
        }
        if LOOK_UP in offered:
            name, arguments = await self._route(messages, offered)
            yield _chunk(tool={"name": name, "args": "", "id": f"call_{name}", "index": 0})
            yield _chunk(
                tool={
                    "name": None,
                    "args": json.dumps(arguments, ensure_ascii=False),
                    "id": None,
                    "index": 0,
                }
            )
            yield _last("tool_calls")
            return
        yield _first()
        async for piece in self._answer(messages):
            yield _chunk(piece)
        yield _last("stop")

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> ChatResult:
        del run_manager
        whole: AIMessageChunk | None = None
        async for chunk in self._astream(messages, stop, **kwargs):
            assert isinstance(chunk.message, AIMessageChunk)  # noqa: S101 - made above
            whole = chunk.message if whole is None else whole + chunk.message
        assert whole is not None  # noqa: S101 - there is a last chunk at least
        message = AIMessage(
            content=whole.content,
            tool_calls=whole.tool_calls,
            response_metadata=whole.response_metadata,
            usage_metadata=whole.usage_metadata,
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,  # noqa: ANN401 - LangChain's signature
    ) -> ChatResult:
        del run_manager
        results: list[ChatResult] = []
        failures: list[BaseException] = []

        def work() -> None:
            try:
                results.append(asyncio.run(self._agenerate(messages, stop, **kwargs)))
            except BaseException as error:  # noqa: BLE001 - raised again for the caller
                failures.append(error)

        # a thread of its own: the caller's may already run an event loop
        thread = threading.Thread(target=work, name="extractive-model")
        thread.start()
        thread.join()
        if failures:
            raise failures[0]
        return results[0]

    async def _route(
        self, messages: Sequence[BaseMessage], offered: dict[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        *before, question = _questions(messages)
        properties = offered[LOOK_UP].get("parameters", {}).get("properties", {})
        allowed = properties.get("assistants", {}).get("items", {}).get("enum")
        decision = await self._dialogue.decide(before, question, allowed)
        if not decision.knowledge and CHAT in offered:
            return CHAT, {}
        arguments: dict[str, Any] = {"assistants": list(decision.assistants)}
        if "question" in properties:
            arguments["question"] = decision.question
        return LOOK_UP, arguments

    async def _answer(self, messages: Sequence[BaseMessage]) -> AsyncIterator[str]:
        *before, asked = _questions(messages)
        extra = messages[-1].additional_kwargs if messages else {}
        if "question" not in extra:  # asked for the question alone, as one that stands alone
            decision = await self._dialogue.decide(before, asked)
            yield decision.question
            return
        async for piece in answer(self.knowledge_base, extra):
            yield piece


def _questions(messages: Sequence[BaseMessage]) -> list[str]:
    """Return what the person said, oldest first, the question to answer last."""
    said = [str(message.text) for message in messages if isinstance(message, HumanMessage)]
    return said or [""]


def _chunk(text: str = "", *, tool: Any = None) -> ChatGenerationChunk:  # noqa: ANN401 - LangChain's shape
    return ChatGenerationChunk(
        message=AIMessageChunk(content=text, tool_call_chunks=[tool] if tool else [])
    )


def _first() -> ChatGenerationChunk:
    """Return what tells who answers, also where the rest is not waited for."""
    asked = {"asked_model": MODEL_NAME}
    return ChatGenerationChunk(message=AIMessageChunk(content="", response_metadata=asked))


def _last(reason: str) -> ChatGenerationChunk:
    return ChatGenerationChunk(
        message=AIMessageChunk(
            content="",
            response_metadata={"model_name": MODEL_NAME, "finish_reason": reason},
            chunk_position="last",
        ),
        generation_info={"finish_reason": reason},
    )


__all__ = ["ExtractiveChatModel"]
