"""Builds the adapters that the settings name: the only place that does."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool

from chatbot.errors import ConfigurationError
from chatbot.images.image import MEGABYTE
from chatbot.images.policy import ImagePolicy
from chatbot.leases.local import LocalLeases
from chatbot.leases.port import SessionLeases
from chatbot.leases.resilient import ResilientLeases
from chatbot.leases.sweeping import Sweeper
from chatbot.limits import Limits
from chatbot.models.endpoints import ModelChoice
from chatbot.models.selection import open_model, select_model
from chatbot.ports import KnowledgeBase, Ports, Respondent, SessionStore
from chatbot.prompts import Prompts
from chatbot.settings import MEMORY, Settings
from chatbot.tasks import Background, end
from chatbot.tools.clock import current_time_tool
from chatbot.tools.mcp import read_mcp_servers
from chatbot.tools.tool_servers import ToolServers
from chatbot.tools.toolbox import Toolbox
from chatbot.traces.opening import open_traces

SEGMENTER_SECONDS = 0.2
DOCUMENTS = "/api/documents"  # and the files behind citations


@dataclass(frozen=True, kw_only=True, slots=True)
class _Knowledge:
    """What turns ask; what finds passages without a model, for routing; who answers alone."""

    base: KnowledgeBase
    passages: KnowledgeBase
    respondent: Respondent | None = None


@asynccontextmanager
async def open_ports(
    settings: Settings, tools: Sequence[BaseTool] = ()
) -> AsyncIterator[Ports]:
    """Open what the settings name, the embedded parts where they name nothing.

    `tools` are offered to the model in its answers, beside those of the settings.

    Raises:
        ConfigurationError: A setting is wrong or another one is missing beside it.
    """
    async with AsyncExitStack() as stack:
        folder = settings.prompts_dir and settings.path(settings.prompts_dir)
        prompts = await asyncio.to_thread(Prompts.load, folder)
        choice = await asyncio.to_thread(select_model, settings)
        knowledge = await _knowledge(settings, stack, judged=choice is not None)
        model = await _model(settings, stack, knowledge.passages, choice)
        history, leases = await _history(settings, stack)
        await stack.enter_async_context(Sweeper(history, leases))
        toolbox, servers = Toolbox(), None
        if choice is not None and any(endpoint.tools for endpoint in choice.endpoints):
            toolbox = Toolbox(tools=tools).adding(*_tools(settings))
            servers = await _tool_servers(settings, stack, toolbox)
        background = Background()
        traces = await stack.enter_async_context(open_traces(settings, background))
        stack.push_async_callback(background.close)
        stack.push_async_callback(end, asyncio.create_task(_load_segmenter()))
        yield Ports(
            background=background,
            history=history,
            leases=leases,
            knowledge=knowledge.base,
            respondent=knowledge.respondent,
            model=model,
            prompts=prompts,
            toolbox=toolbox,
            tool_servers=servers,
            window=getattr(model, "context", None),
            images=history,
            image_policy=_image_policy(settings),
            sees_images=_sees_images(model),
            traces=traces,
            limits=_limits(settings),
            default_session_id=settings.default_session_id,
            default_intent=settings.route_default,
        )


def _limits(settings: Settings) -> Limits:
    # What assistants answer takes a model, so it takes longer and is not begun on a guess.
    passages = settings.ragflow_mode == "retrieval" or settings.ragflow_base_url is None
    return Limits(
        turn_seconds=settings.turn_timeout_seconds,
        wait_seconds=settings.session_wait_seconds,
        router_seconds=settings.router_timeout_seconds,
        knowledge_seconds=(
            settings.knowledge_timeout_seconds if passages else _answer_seconds(settings)
        ),
        history_turns=settings.history_turns,
        passages=settings.passages,
        summarize=settings.summarize_history,
        prefetch=settings.prefetch if passages else 0,
        route_early=settings.route_early,
        head_start=settings.head_start,
        question_characters=settings.question_characters,
    )


def _answer_seconds(settings: Settings) -> float:
    """Return how long RAGFlow's assistants may take.

    A turn has time for a second try, with others, and for the answer that is made of it.
    """
    return max(settings.turn_timeout_seconds / 3, settings.knowledge_timeout_seconds)


async def _history(
    settings: Settings, stack: AsyncExitStack
) -> tuple[SessionStore, SessionLeases]:
    await _load("chatbot.history.local")
    from chatbot.history.local import LocalChatHistory

    folder = settings.data_dir
    file, leases_file = [
        MEMORY if folder is None else folder / f"{name}.sqlite3"
        for name in ("history", "leases")
    ]
    local = LocalChatHistory(file, ttl_days=settings.session_ttl_days)
    local_leases = LocalLeases(leases_file)
    stack.push_async_callback(local_leases.close)
    if settings.mongodb_uri is None:
        return await stack.enter_async_context(local), local_leases
    await local_leases.open()
    await _load("chatbot.history.connection", "chatbot.history.mongodb")
    from chatbot.history.connection import open_client
    from chatbot.history.mongodb import MongoChatHistory
    from chatbot.history.resilient import ResilientChatHistory
    from chatbot.leases.mongodb import MongoLeases

    client = open_client(settings.mongodb_uri.get_secret_value())
    stack.push_async_callback(client.close)
    database, collection = settings.mongodb_db, settings.mongodb_collection
    primary = MongoChatHistory(
        client,
        database=database,
        collection=collection,
        ttl_days=settings.session_ttl_days,
        owner=settings.mongodb_owner,
    )
    history = await stack.enter_async_context(ResilientChatHistory(primary, local))
    leases = ResilientLeases(
        MongoLeases(client, database=database, collection=collection),
        local_leases,
        away=lambda: history.is_away,
        failed=history.note_failure,
    )
    stack.push_async_callback(leases.close)
    return history, leases


async def _knowledge(settings: Settings, stack: AsyncExitStack, *, judged: bool) -> _Knowledge:
    """Open the knowledge base. A language model judges what is found, if it is `judged`."""
    key, address = settings.ragflow_api_key, settings.ragflow_base_url
    if (key is None) != (address is None):
        missing = "RAGFLOW_API_KEY" if key is None else "RAGFLOW_BASE_URL"
        message = f"{missing} is missing: RAGFlow needs both its address and a key."
        raise ConfigurationError(message)
    if key is not None and address is not None:
        await _load("chatbot.knowledge.ragflow.opening")
        from chatbot.knowledge.ragflow.opening import open_ragflow

        opened = open_ragflow(
            address,
            key.get_secret_value(),
            timeout_seconds=settings.knowledge_timeout_seconds,
            # RAGFlow searches before the first word, in silence
            silence_seconds=settings.knowledge_timeout_seconds
            + settings.first_token_timeout_seconds,
            answer_seconds=_answer_seconds(settings),
            documents_url=DOCUMENTS,
        )
        ragflow = await stack.enter_async_context(opened)
        mode = settings.ragflow_mode
        return _Knowledge(
            base=ragflow.passages if mode == "retrieval" else ragflow.answers,
            passages=ragflow.passages,
            respondent=ragflow.answers if mode == "answer" else None,
        )
    await _load("chatbot.knowledge.local.knowledge_base", "chatbot.knowledge.local.opening")
    from chatbot.knowledge.local.knowledge_base import LocalKnowledgeBase
    from chatbot.knowledge.local.opening import similarity_of

    embedded = LocalKnowledgeBase(
        settings.path(settings.knowledge_dir),
        settings.data_dir,
        documents_url=DOCUMENTS,
        similarity=similarity_of(settings),
        generous=judged,
    )
    stack.push_async_callback(embedded.aclose)
    # The first question does not wait for the index, as far as it can be ready before.
    warming = asyncio.create_task(embedded.check(), name="knowledge index")
    stack.push_async_callback(end, warming)
    return _Knowledge(base=embedded, passages=embedded)


async def _model(
    settings: Settings,
    stack: AsyncExitStack,
    knowledge: KnowledgeBase,
    choice: ModelChoice | None,
) -> BaseChatModel:
    if choice is not None:
        return await stack.enter_async_context(open_model(choice, settings))
    await _load("chatbot.models.extractive")
    from chatbot.models.extractive import ExtractiveChatModel

    return ExtractiveChatModel(knowledge_base=knowledge)


def _tools(settings: Settings) -> Sequence[BaseTool]:
    names = _list(settings.tools)
    if unknown := sorted(set(names) - {"current_time"}):
        message = f"TOOLS={settings.tools} names {unknown[0]!r}; there is only current_time."
        raise ConfigurationError(message)
    return [current_time_tool()] if names else []


async def _tool_servers(
    settings: Settings, stack: AsyncExitStack, toolbox: Toolbox
) -> ToolServers | None:
    if settings.models_file is None:
        return None
    servers = await asyncio.to_thread(read_mcp_servers, settings.path(settings.models_file))
    return await stack.enter_async_context(ToolServers(servers, toolbox))


def _image_policy(settings: Settings) -> ImagePolicy:
    return ImagePolicy(
        hosts=frozenset(_list(settings.image_hosts.lower())),
        private_hosts=frozenset(_list(settings.image_private_hosts.lower())),
        longest=int(settings.image_megabytes * MEGABYTE),
        most=settings.images_per_question,
    )


def _sees_images(model: BaseChatModel) -> bool:
    endpoints = getattr(model, "endpoints", ())
    return any("vision" in endpoint.abilities for endpoint in endpoints)


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


async def _load_segmenter() -> None:
    """Read the dictionary of Chinese words once a first question is on its way to the model.

    Reading it stops all else for about 0.2 s, which then waits for the model anyway.
    """
    await asyncio.sleep(SEGMENTER_SECONDS)
    await _load("rjieba")


async def _load(*modules: str) -> None:
    """Import modules in a thread: the libraries behind them take up to seconds."""
    for module in modules:
        await asyncio.to_thread(import_module, module)
