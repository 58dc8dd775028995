"""Images in the terminal: shown to the model, and saved from its answer."""

import base64
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from chatbot.errors import InputError
from chatbot.settings import Settings
from graphs.synchronous import SyncChatbot, open_chatbot_sync
from serving.cli.conversation import Conversation
from serving.cli.slash import obey
from tests.integration.cli.terminal import run
from tests.servers.model import ChatRequest, ModelServer, Script, answer, call, frames

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
DRAWN = frames([
    {"choices": [{"index": 0, "delta": {"images": [{"image_url": {"url": URL}}]}}]},
    {"choices": [{"index": 0, "delta": {"content": "Here."}, "finish_reason": "stop"}]},
])  # fmt: skip


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    file = tmp_path / "a picture.png"
    file.write_bytes(PNG)
    return file


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    def reply(request: ChatRequest) -> Script:
        if request.tools:
            return call("general_chat")
        return DRAWN if "draw" in request.question else answer("I see.")

    with ModelServer(reply) as server:
        yield server


@pytest.fixture(scope="module")
def bot(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[SyncChatbot]:
    settings = Settings(
        chatbot_data_dir=tmp_path_factory.mktemp("data"),
        openai_base_url=model.base_url,
        llm_model="gpt-4o",
    )
    with open_chatbot_sync(settings) as opened:
        yield opened


@pytest.fixture
def talk(bot: SyncChatbot, request: pytest.FixtureRequest) -> Conversation:
    console = Console(file=io.StringIO(), width=100)
    return Conversation(bot=bot, console=console, session_id=request.node.name, choices={})


def shown(conversation: Conversation, line: str) -> str:
    with conversation.console.capture() as capture:
        obey(conversation, line)
    return capture.get()


def urls(model: ModelServer) -> list[str]:
    """Return the images in the last message to the model."""
    content = model.seen[-1].body["messages"][-1]["content"]
    blocks = [] if isinstance(content, str) else content
    return [block["image_url"]["url"] for block in blocks if block["type"] == "image_url"]


def test_ask_shows_an_image(tmp_path: Path, picture: Path, model: ModelServer) -> None:
    settings = {"OPENAI_BASE_URL": model.base_url, "LLM_MODEL": "gpt-4o"}
    result = run(tmp_path, "ask", "What is this?", "--image", str(picture), settings=settings)
    assert (result.code, result.out, result.err) == (0, "I see.\n", "")
    assert urls(model) == [URL]


def test_ask_refuses_an_image_in_a_sentence(picture: Path, model: ModelServer) -> None:
    settings = {"OPENAI_BASE_URL": model.base_url, "LLM_MODEL": "qwen-plus"}
    before = len(model.seen)
    result = run(picture.parent, "ask", "?", "-i", str(picture), settings=settings)
    assert (result.code, result.out) == (1, "")
    assert "cannot read images" in result.err
    assert "Traceback" not in result.err
    assert len(model.seen) == before


def test_an_image_goes_with_the_next_question_alone(
    talk: Conversation, picture: Path, model: ModelServer
) -> None:
    assert "a picture.png" in shown(talk, f"/image {picture}")
    assert "no image" in shown(talk, "/image none")
    shown(talk, f"/image {picture}")
    talk.ask("What is this?")
    assert urls(model) == [URL]
    assert talk.images == []
    shown(talk, "/regenerate")
    assert urls(model) == [URL]
    shown(talk, "/edit And what is that?")
    assert urls(model) == [URL]
    talk.ask("And without?")
    assert urls(model) == []


def test_an_image_that_was_refused_is_there_for_the_next_try(
    talk: Conversation, model: ModelServer
) -> None:
    shown(talk, "/image https://x.test/a.png")
    talk.ask("What is this?")
    assert talk.images == ["https://x.test/a.png"]
    with pytest.raises(InputError, match="no file"):
        obey(talk, "/image nowhere.png")


def test_the_images_of_an_answer_can_be_saved(talk: Conversation, tmp_path: Path) -> None:
    talk.ask("What is this?")
    with pytest.raises(InputError, match="shows no image"):
        obey(talk, f"/save {tmp_path}")
    talk.ask("draw something")
    [line] = shown(talk, f"/save {tmp_path / 'new'}").splitlines()
    assert Path(line).read_bytes() == PNG
    with pytest.raises(InputError, match="cannot be written"):
        obey(talk, f"/save {line}")
