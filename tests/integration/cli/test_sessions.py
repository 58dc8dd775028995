import io
import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from chatbot.errors import InputError
from chatbot.settings import Settings
from graphs.synchronous import SyncChatbot, open_chatbot_sync
from serving.cli import sessions
from serving.cli.archive import export, restore
from serving.cli.conversation import Conversation
from serving.cli.slash import obey
from tests.integration.cli.terminal import run

WALDEN = "瓦尔登湖在哪里？"
LEAVE = "How many days of annual leave do I get?"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(chatbot_data_dir=tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def bot(settings: Settings) -> Iterator[SyncChatbot]:
    with open_chatbot_sync(settings) as opened:
        yield opened


@pytest.fixture
def talk(bot: SyncChatbot, request: pytest.FixtureRequest) -> Conversation:
    """A conversation in a session of the test's own."""
    console = Console(file=io.StringIO(), width=100)
    name = request.node.name
    return Conversation(bot=bot, console=console, session_id=name, choices={})


def shown(conversation: Conversation, line: str) -> str:
    """Return what a line with a slash prints."""
    with conversation.console.capture() as capture:
        obey(conversation, line)
    return capture.get()


def test_why_tells_how_the_answer_came_about(talk: Conversation) -> None:
    talk.ask(WALDEN)
    found = shown(talk, "/why")
    assert all(word in found for word in ("knowledge_base", "瓦尔登湖 Walden", "[1]", "0.9"))


def test_sources_are_quoted(talk: Conversation) -> None:
    talk.ask("Hello!")
    assert "cites nothing" in shown(talk, "/sources")
    talk.ask(WALDEN)
    assert "康科德" in shown(talk, "/sources")


def test_session_begun_elsewhere_goes_on(talk: Conversation) -> None:
    talk.bot.ask(WALDEN, session_id="begun-elsewhere")

    assert f"last asked: {WALDEN}" in shown(talk, "/sessions begun-elsewhere")
    assert "康科德" in shown(talk, "/sources")
    assert "knowledge_base" in shown(talk, "/why")
    talk.ask(LEAVE)
    turns = talk.bot.turns("begun-elsewhere")
    assert [turn.question for turn in turns] == [WALDEN, LEAVE]


def test_user_has_sessions_of_their_own(bot: SyncChatbot) -> None:
    console = Console(file=io.StringIO(), width=100)
    ann = Conversation(
        bot=bot, console=console, session_id="of-ann", choices={"user_id": "ann"}
    )
    ann.ask(WALDEN)
    first = ann.last_turn()
    shown(ann, "/regenerate")

    assert "of-ann" in shown(ann, "/sessions")
    assert ann.last_turn().id != first.id
    assert [turn.question for turn in bot.turns("of-ann", user_id="ann")] == [WALDEN]
    assert bot.turns("of-ann") == []


def test_regenerated_answer_is_made_as_the_last_was(talk: Conversation) -> None:
    talk.bot.ask(WALDEN, session_id=talk.session_id, route="general_chat")
    shown(talk, "/regenerate")
    assert talk.last_turn().intent == "general_chat"
    talk.choices["route"] = None  # the default again
    shown(talk, "/regenerate")
    assert talk.last_turn().intent == "knowledge_base"


def test_regenerated_answer_takes_the_place_of_the_last(talk: Conversation) -> None:
    talk.ask(WALDEN)
    first = talk.last_turn()
    shown(talk, "/regenerate")
    turns = talk.bot.turns(talk.session_id)
    assert [turn.question for turn in turns] == [WALDEN]
    assert turns[0].id != first.id


def test_edited_question_takes_the_place_of_the_last(talk: Conversation) -> None:
    talk.ask(WALDEN)
    shown(talk, f"/edit {LEAVE}")
    assert [turn.question for turn in talk.bot.turns(talk.session_id)] == [LEAVE]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param("/why", "Nothing was asked", id="why"),
        pytest.param("/sources", "Nothing was asked", id="sources"),
        pytest.param("/save", "Nothing was asked", id="save"),
        pytest.param("/regenerate", "Nothing was asked", id="regenerate"),
        pytest.param("/edit x", "Nothing was asked", id="edit"),
        pytest.param("/edit", "Write the other question", id="edit without a question"),
        pytest.param("/new a b", "session id", id="session of two words"),
        pytest.param("/assistant nobody", "No assistant", id="unknown assistant"),
        pytest.param("/assistant e", "Several assistants", id="ambiguous assistant"),
    ],
)
def test_what_cannot_be_done_is_said(bot: SyncChatbot, line: str, words: str) -> None:
    console = Console(file=io.StringIO())
    empty = Conversation(bot=bot, console=console, session_id="empty", choices={})
    with pytest.raises(InputError, match=words):
        obey(empty, line)


def test_chosen_assistant_is_asked_alone(talk: Conversation) -> None:
    assert "asked" in shown(talk, "/assistant handbook")
    assert "*" in shown(talk, "/assistant")
    talk.ask(WALDEN)
    assert set(talk.reply.metadata["assistants"]) <= {"员工手册 Employee Handbook"}
    shown(talk, "/assistant all")
    talk.ask(WALDEN)
    assert talk.reply.citations


def test_sessions_are_switched_by_number_and_name(talk: Conversation) -> None:
    talk.ask(WALDEN)
    began_in = talk.session_id
    shown(talk, "/new other")
    assert talk.session_id == "other"
    assert began_in in shown(talk, "/sessions")
    shown(talk, "/sessions 1")
    assert talk.session_id == began_in
    shown(talk, "/sessions somewhere")
    assert talk.session_id == "somewhere"


def test_new_sessions_have_different_names(talk: Conversation) -> None:
    names = set()
    for _ in range(3):
        shown(talk, "/new")
        names.add(talk.session_id)
    assert len(names) == 3


def test_exported_session_is_the_same_when_read_in_again(
    settings: Settings, talk: Conversation, tmp_path: Path
) -> None:
    talk.ask(WALDEN)
    export(settings, talk.session_id, tmp_path / "session.json")
    restore(settings, str(tmp_path / "session.json"), "copy")
    restore(settings, str(tmp_path / "session.json"), "copy")
    export(settings, "copy", tmp_path / "copy.json")

    first, second = (
        json.loads((tmp_path / name).read_text(encoding="utf-8"))
        for name in ("session.json", "copy.json")
    )
    assert second["turns"] == first["turns"]
    assert first["turns"][0]["record"]["passages"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(None, "cannot be read", id="no file"),
        pytest.param("# no", "not JSON", id="no JSON"),
        pytest.param("[]", "not an exported session", id="other JSON"),
        pytest.param("\udcff", "not JSON", id="no text"),
    ],
)
def test_what_is_no_export_is_refused(
    settings: Settings, tmp_path: Path, content: str | None, words: str
) -> None:
    file = tmp_path / "file.json"
    if content is not None:
        file.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=words):
        restore(settings, str(file), None)


def test_commands_on_sessions(
    settings: Settings, talk: Conversation, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(command: Callable[..., None], *arguments: Any, **options: Any) -> str:
        capsys.readouterr()
        command(settings, *arguments, **options)
        return capsys.readouterr().out

    talk.ask(WALDEN)
    name = talk.session_id
    sessions.rename_session(settings, name, "湖")

    listed = json.loads(said(sessions.list_sessions, 50, as_json=True))
    assert {"session_id": name, "title": "湖", "turns": 1}.items() <= listed[0].items()
    assert "湖" in said(sessions.list_sessions, 50, as_json=False)
    assert WALDEN in said(sessions.show_session, name, 50, as_json=False)
    assert name in said(sessions.search_sessions, "瓦尔登湖", 50, as_json=False)
    turn = json.loads(said(sessions.explain_turn, name, None, as_json=True))
    assert turn["record"]["intent"] == "knowledge_base"
    assert turn["id"] in said(sessions.explain_turn, name, turn["id"], as_json=False)
    with pytest.raises(InputError, match="no such turn"):
        sessions.explain_turn(settings, name, "unknown", as_json=False)
    assert said(sessions.clear_session, name) == "1 turn forgotten.\n"
    with pytest.raises(InputError, match="no session"):
        sessions.show_session(settings, name, 50, as_json=False)
    with pytest.raises(InputError, match="no session"):
        sessions.rename_session(settings, name, "again")


def test_pages_of_sessions_and_all_forgotten(
    settings: Settings, bot: SyncChatbot, capsys: pytest.CaptureFixture[str]
) -> None:
    user = "eve@example.com"
    for name in ("one", "two", "three"):
        bot.ask(WALDEN, session_id=name, user_id=user)
    listed = bot.sessions(user_id=user, limit=2)
    assert [each.session_id for each in listed] == ["three", "two"]
    [rest] = bot.sessions(user_id=user, limit=2, before=listed[-1].cursor)
    assert rest.session_id == "one"

    sessions.list_sessions(settings, 2, as_json=False, user=user)
    assert f"--before {listed[-1].cursor}" in capsys.readouterr().err
    sessions.list_sessions(settings, 2, as_json=True, user=user, before=listed[-1].cursor)
    [shown] = json.loads(capsys.readouterr().out)
    assert (shown["session_id"], shown["cursor"]) == ("one", rest.cursor)
    sessions.list_sessions(settings, 2, as_json=False, user=user, before=rest.cursor)
    assert "no more sessions" in capsys.readouterr().err
    for wrong in ("", "one", "1:a b", f"{10**17}:a", "-1:a"):
        with pytest.raises(InputError):
            bot.sessions(user_id=user, before=wrong)

    bot.ask(WALDEN, session_id="of-somebody-else")
    sessions.forget_user(settings, user)
    assert capsys.readouterr().out == "3 sessions forgotten.\n"
    assert bot.sessions(user_id=user) == ()
    assert bot.turns("of-somebody-else")


def test_what_the_command_prints_leads_through_all_pages(
    settings: Settings, bot: SyncChatbot
) -> None:
    user = "pages@example.com"
    names = ["it's", "b$HOME", "瓦尔登湖", "-c", "d"]
    for name in names:
        bot.ask(WALDEN, session_id=name, user_id=user)
    found: list[str] = []
    more: list[str] = []
    for _ in range(len(names)):
        command = ["sessions", "list", "--user", user, "--limit", "2", *more]
        shown = run(settings.chatbot_data_dir, *command)
        page = [name for name in names if f"{name} " in shown.out]
        assert shown.out.count("瓦尔登湖在哪里") == len(page) <= 2
        found += sorted(page, key=shown.out.index)
        hint = shown.err.partition("For those behind them: ")[2]
        if not hint:
            break
        more = shlex.split(hint)
    assert found == names[::-1]


def test_commands_on_sessions_of_a_user(
    settings: Settings, bot: SyncChatbot, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    user, file = "ben@example.com", tmp_path / "lake.json"
    bot.ask(WALDEN, session_id="lake-of-ben", user_id=user)

    sessions.rename_session(settings, "lake-of-ben", "The pond", user=user)
    sessions.list_sessions(settings, 50, as_json=False, user=user)
    sessions.search_sessions(settings, "瓦尔登湖", 50, as_json=False, user=user)
    sessions.show_session(settings, "lake-of-ben", 50, as_json=False, user=user)
    sessions.explain_turn(settings, "lake-of-ben", None, as_json=False, user=user)
    shown = capsys.readouterr().out
    assert all(word in shown for word in ("The pond", "SESSION", f"> {WALDEN}", "route"))

    export(settings, "lake-of-ben", file, user=user)
    restore(settings, str(file), "copy-of-ben", user=user)
    assert [turn.question for turn in bot.turns("copy-of-ben", user_id=user)] == [WALDEN]
    assert bot.turns("copy-of-ben") == bot.turns("lake-of-ben") == []
    sessions.clear_session(settings, "copy-of-ben", user=user)
    assert bot.turns("copy-of-ben", user_id=user) == []
