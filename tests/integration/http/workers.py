"""Several workers of one service: each an app of its own over the same files."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from pydantic import SecretStr

from chatbot.settings import Settings
from serving.http import create_app
from tests.integration.http.running_app import running_app
from tests.servers.model import Brain, ModelServer

DOCUMENT = "# Leave\n\nEverybody has 25 days of leave a year.\n"


@dataclass(frozen=True, kw_only=True)
class Workers:
    model: ModelServer
    clients: list[httpx.Client]


@contextmanager
def workers(
    folder: Path, brain: Brain, *, count: int = 1, **settings: object
) -> Iterator[Workers]:
    """Run `count` workers over one folder, with one model server."""
    knowledge = folder / "knowledge" / "Handbook"
    knowledge.mkdir(parents=True, exist_ok=True)
    (knowledge / "leave.md").write_text(DOCUMENT, encoding="utf-8")
    with ExitStack() as stack:
        model = stack.enter_context(ModelServer(brain))
        urls = [
            stack.enter_context(
                running_app(
                    create_app(
                        Settings(
                            chatbot_data_dir=folder / "data",
                            knowledge_dir=folder / "knowledge",
                            openai_api_key=SecretStr("k"),
                            openai_base_url=model.base_url,
                            llm_model="scripted",
                            **settings,  # type: ignore[arg-type]
                        )
                    )
                )
            )
            for _ in range(count)
        ]
        clients = [stack.enter_context(httpx.Client(base_url=url, timeout=20)) for url in urls]
        yield Workers(model=model, clients=clients)
