"""`chatbot knowledge`: what there is to ask, and what a query finds."""

from collections.abc import Sequence
from dataclasses import asdict

from rich.text import Text

from chatbot.domain import Assistant, Findings
from chatbot.errors import InputError
from chatbot.settings import Settings
from graphs.conversation import Chatbot
from serving.cli.sessions import with_bot
from serving.cli.tables import plain_table
from serving.cli.views import open_console
from serving.cli.words import complain, in_one_line, plain, print_json


def list_assistants(settings: Settings, *, as_json: bool) -> None:
    """Print the assistants and what they know."""
    found = with_bot(settings, lambda bot: bot.assistants())
    if as_json:
        print_json([asdict(each) for each in found])
    elif found:
        table = plain_table("ASSISTANT", "KNOWS")
        for each in found:
            table.add_row(Text(in_one_line(each.name)), Text(in_one_line(each.description)))
        open_console().print(table)
    else:
        complain("There are no assistants. `chatbot doctor` says what to do.")


def search(
    settings: Settings, query: str, names: Sequence[str], limit: int | None, *, as_json: bool
) -> None:
    """Print the passages that a query finds, the best first."""

    async def find(bot: Chatbot) -> Findings:
        chosen = named(await bot.assistants(), names)
        return await bot.search(query, assistants=chosen, limit=limit or settings.passages)

    found = with_bot(settings, find)
    for name, reason in found.failures.items():
        complain(f"{in_one_line(name)}: {reason}")
    if as_json:
        print_json([asdict(passage) for passage in found.passages])
        return
    if not found.passages:
        complain("Nothing in the knowledge base is about that.")
        if found.uncertain:
            complain("A language model would be shown what comes closest:")
        elif found.nearest:
            names = ", ".join(in_one_line(name) for name in found.nearest)
            complain(f"The documents that come closest: {names}.")
    console = open_console()
    for passage in found.shown:
        parts = (passage.assistant, passage.document, passage.location)
        where = " · ".join(in_one_line(part) for part in parts if part)
        console.print(f"{passage.score:.2f}  {where}", style="bold")
        console.print(plain(passage.text).strip())
        console.print()


def named(assistants: Sequence[Assistant], names: Sequence[str]) -> Sequence[Assistant]:
    """Return the assistants with these names or ids, all where nothing is named.

    Raises:
        InputError: There is none of a name.
    """
    known = {each.name: each for each in assistants} | {each.id: each for each in assistants}
    unknown = [name for name in names if name not in known]
    if unknown:
        there = ", ".join(in_one_line(each.name) for each in assistants) or "none"
        message = f"There is no assistant {unknown[0]!r}. There are: {there}."
        raise InputError(message)
    return [known[name] for name in names] or assistants
