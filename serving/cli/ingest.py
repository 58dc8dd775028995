"""`chatbot ingest`: brings files into the knowledge base and shows how far they are."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from chatbot.errors import ConfigurationError, InputError
from chatbot.knowledge.files import named
from chatbot.settings import Settings
from serving.cli.bars import Bars, Step
from serving.cli.views import open_console
from serving.cli.words import complain, in_one_line

if TYPE_CHECKING:
    from chatbot.knowledge.ragflow.transport import RagflowTransport


def ingest(
    settings: Settings, paths: Sequence[Path], *, dataset: str | None, assistant: str | None
) -> bool:
    """Bring the files in and return whether all of them are there.

    The dataset is by default named like the one folder that is given.

    Raises:
        ChatbotError: The knowledge base could not take anything.
    """
    remote = settings.ragflow_base_url is not None and settings.ragflow_api_key is not None
    if assistant is not None and not remote:
        message = (
            "RAGFlow is not set: the dataset itself is the assistant, so leave --assistant."
        )
        raise InputError(message)
    files = files_of(paths)
    dataset = _dataset_of(paths) if dataset is None else dataset
    console = open_console()
    bring = _into_ragflow if remote else _into_folder
    try:
        steps = asyncio.run(bring(settings, files, dataset, console))
    except KeyboardInterrupt:
        complain("Stopped. The same command goes on from here.")
        raise
    failed = [step for step in steps if step.state == "failed"]
    for step in failed:
        complain(f"{in_one_line(step.name)}: {in_one_line(step.message)}")
    unchanged = sum(step.state == "unchanged" for step in steps)
    counts = f"{len(steps) - len(failed)} of {len(steps)} files can be searched"
    console.print(f"{counts}, {unchanged} of them unchanged." if unchanged else f"{counts}.")
    if assistant is not None and len(failed) < len(steps):
        name = asyncio.run(_make_assistant(settings, assistant, dataset))
        console.print(f"The assistant {in_one_line(name)} knows them.", markup=False)
    return not failed


def files_of(paths: Sequence[Path]) -> Mapping[str, Path]:
    """Return the files by name; folders stand for all that is in them.

    Raises:
        InputError: One is missing, or there are none.
    """
    for path in paths:
        if not path.exists():
            message = f"There is no file {path}."
            raise InputError(message)
    found = named(paths)
    if not found:
        message = "There are no files to bring in."
        raise InputError(message)
    return found


def _dataset_of(paths: Sequence[Path]) -> str:
    folders = [path for path in paths if path.is_dir()]
    if len(paths) == len(folders) == 1:
        return folders[0].resolve().name
    message = "Name the dataset that the files belong to: --dataset NAME."
    raise InputError(message)


async def _into_folder(
    settings: Settings, files: Mapping[str, Path], dataset: str, console: Console
) -> Sequence[Step]:
    from chatbot.knowledge.local.ingest import Ingestion  # noqa: PLC0415 - heavy
    from chatbot.knowledge.local.opening import similarity_of  # noqa: PLC0415

    try:
        with Bars(console, len(files)) as bars:
            ingestion = Ingestion(
                files=files,
                folder=settings.path(settings.knowledge_dir),
                dataset=dataset,
                data_dir=settings.data_dir,
                similarity=similarity_of(settings),
                report=bars.show,
            )
            steps = await ingestion.run()
    except OSError as error:
        message = f"KNOWLEDGE_DIR cannot be written: {error.strerror}."
        raise ConfigurationError(message) from None
    if ingestion.problem:
        complain(ingestion.problem)
    return steps


async def _into_ragflow(
    settings: Settings, files: Mapping[str, Path], dataset: str, console: Console
) -> Sequence[Step]:
    from chatbot.knowledge.ragflow.ingest import Ingestion  # noqa: PLC0415 - heavy

    async with _ragflow(settings) as transport:
        with Bars(console, len(files)) as bars:
            return await Ingestion(
                transport=transport, files=files, dataset=dataset, report=bars.show
            ).run()


async def _make_assistant(settings: Settings, name: str, dataset: str) -> str:
    """Let the assistant of RAGFlow know the dataset, and return how it is called."""
    from chatbot.knowledge.ragflow.creation import (  # noqa: PLC0415 - heavy
        assistant_over,
        dataset_named,
    )

    async with _ragflow(settings) as transport:
        dataset_id = await dataset_named(transport, dataset)
        return (await assistant_over(transport, name, dataset_id)).name


@asynccontextmanager
async def _ragflow(settings: Settings) -> AsyncIterator["RagflowTransport"]:
    from chatbot.knowledge.ragflow.transport import RagflowTransport  # noqa: PLC0415 - heavy

    assert settings.ragflow_base_url is not None  # noqa: S101 - the caller looked
    assert settings.ragflow_api_key is not None  # noqa: S101
    transport = RagflowTransport(
        settings.ragflow_base_url,
        settings.ragflow_api_key.get_secret_value(),
        timeout_seconds=settings.knowledge_timeout_seconds,
    )
    try:
        yield transport
    finally:
        await transport.close()
