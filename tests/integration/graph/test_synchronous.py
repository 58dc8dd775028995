import asyncio
import subprocess
import sys
from pathlib import Path

from chatbot.settings import Settings
from graphs import open_chatbot, open_chatbot_sync


def test_a_script_asks_without_awaiting(tmp_path: Path) -> None:
    script = (
        "from graphs import open_chatbot_sync\n"
        "with open_chatbot_sync() as bot:\n"
        "    print(bot.ask('Who wrote Walden?'))\n"
    )
    done = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", script],
        env={"CHATBOT_DATA_DIR": str(tmp_path), "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    assert "Thoreau" in done.stdout
    assert done.stderr == ""


async def test_it_works_inside_a_running_loop(tmp_path: Path) -> None:
    settings = Settings(chatbot_data_dir=tmp_path)

    with open_chatbot_sync(settings) as bot:
        kinds = [event["type"] for event in bot.stream("Who wrote Walden?", session_id="s")]
        assert kinds[-1] == "end"
        [turn] = bot.turns("s")
        assert turn.status == "complete"
        assert bot.clear("s") == 1
    await asyncio.sleep(0)


async def test_a_stream_that_was_left_open_keeps_its_turn(tmp_path: Path) -> None:
    settings = Settings(chatbot_data_dir=tmp_path)
    with open_chatbot_sync(settings) as bot:
        events = bot.stream("Who wrote Walden?", session_id="s")
        while next(events)["type"] != "content":
            pass
    events.close()
    async with open_chatbot(settings) as again:
        [turn] = await again.turns("s")
    assert turn.answer
