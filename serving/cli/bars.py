"""Shows how far files are on their way into the knowledge base."""

from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from serving.cli.words import in_one_line

NAME_LENGTH = 40
SHOWN = 15  # files with a bar at once; those that are ready leave
FINAL = {"done", "unchanged", "failed"}


class Step(Protocol):
    """How far a file is."""

    @property
    def name(self) -> str:
        """The name of the file."""
        ...

    @property
    def state(self) -> str:
        """What is done with it, at last `done`, `unchanged` or `failed`."""
        ...

    @property
    def message(self) -> str:
        """Why it failed."""
        ...


class FractionStep(Step, Protocol):
    """A step that knows how far it is, from 0 to 1."""

    @property
    def fraction(self) -> float:
        """The part that is done."""
        ...


def progress_on(console: Console) -> Progress:
    """Return bars with a name before and a `state` behind, none in a pipe."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[state]}", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class Bars:
    """A bar for each file that is under way and one for all `count` of them.

    In a pipe, a line for each file that is ready.
    """

    def __init__(self, console: Console, count: int) -> None:
        self._console = console
        self._count = count
        self._ready: set[str] = set()
        self._tasks: dict[str, TaskID] = {}
        self._progress = progress_on(console)

    def __enter__(self) -> Self:
        """Begin to show."""
        self._progress.start()
        self._total = self._progress.add_task("all files", total=self._count, state="")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bars away."""
        self._progress.stop()

    def show(self, step: FractionStep) -> None:
        """Show how far a file is."""
        name = in_one_line(step.name, NAME_LENGTH)
        if step.state in FINAL:
            if (task := self._tasks.pop(step.name, None)) is not None:
                self._progress.remove_task(task)
            self._console.print(f"{name}: {step.state}", markup=False)
            self._ready.add(step.name)
            ready = len(self._ready)
            state = f"{ready} of {self._count}"
            self._progress.update(self._total, completed=ready, state=state)
            return
        task = self._tasks.get(step.name)
        if task is None:
            if len(self._tasks) >= SHOWN or step.state == "waiting":
                return
            task = self._tasks[step.name] = self._progress.add_task(name, total=1, state="")
        self._progress.update(task, completed=step.fraction, state=step.state)
