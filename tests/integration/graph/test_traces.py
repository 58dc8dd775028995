import json
import os
import subprocess
import sys
from pathlib import Path

from tests.servers.traces import Run, trace_sink

SECRETS = {
    "OPENAI_API_KEY": "sk-openai-secret",
    "LANGSMITH_API_KEY": "ls-secret",
}
CONVERSATION = """
import asyncio
from graphs import open_chatbot
from langchain_core.tracers.langchain import wait_for_all_tracers

async def main():
    async with open_chatbot() as bot:
        await bot.ask("保修多久？", session_id="trace-session", user_id="ann")
        await bot.ask("谢谢你", session_id="trace-session", user_id="ann")
    wait_for_all_tracers()

asyncio.run(main())
"""


def run_of(root: Run, name: str) -> Run:
    return next(child for child in root.children if child.name == name)


def test_each_turn_is_one_trace(tmp_path: Path) -> None:
    with trace_sink() as sink:
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith("LANGSMITH")},
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_ENDPOINT": sink.url,
            "LANGSMITH_API_KEY": SECRETS["LANGSMITH_API_KEY"],
            "CHATBOT_DATA_DIR": str(tmp_path),
            "PYTHONUTF8": "1",
        }
        subprocess.run(  # noqa: S603 - our own code
            [sys.executable, "-c", CONVERSATION], env=environment, check=True, timeout=60
        )
        knowledge, chat = sink.wait_for_roots(2)
        sent = sink.raw
    for root, intent in ((knowledge, "knowledge_base"), (chat, "general_chat")):
        assert root.name == "chatbot"
        assert root.metadata["session_id"] == "trace-session"
        assert root.metadata["user_id"] == "ann"
        assert root.metadata["intent"] == intent
        assert root.metadata["model"] == "extractive"
        assert not root.data.get("error")
    tree = knowledge.tree()
    assert list(tree) == [
        *("load_history", "route", "enhance_query", "retrieve", "answer", "save_turn")
    ]
    assert next(iter(tree["route"])) == "router"
    assert any("answer" in tree[step] for step in ("route", "answer"))  # begun early, or not
    assert list(chat.tree()) == ["load_history", "route", "answer", "save_turn"]
    assert run_of(knowledge, "route").metadata["route_reason"]
    assert json.dumps(knowledge.data["outputs"], ensure_ascii=False).count("24")
    assert SECRETS["LANGSMITH_API_KEY"].encode() not in sent
