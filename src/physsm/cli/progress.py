"""Progress of a fit on standard error: in a terminal a bar with loss, rate and time left, then what
is being done after the training; else a line at each tenth of the training, and for each later
stage that takes long.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from time import perf_counter
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from physsm.training.loop import Progress as TrainingProgress


_AFTERWARDS = "fitting the intervals"  # which may take as long as a short training
_LONG = 2.0  # s: a shorter stage is not worth a line


class FitProgress(Protocol):
    """Receiver of the progress of a fit: called after each training step, and told each stage."""

    def __call__(self, now: TrainingProgress) -> None:
        """Show a training step."""
        ...

    def stage(self, name: str) -> None:
        """Show what is done now."""
        ...


@contextlib.contextmanager
def training_bar(label: str) -> Iterator[FitProgress]:
    """A progress bar; yields the receiver that a fit reports to."""
    console = Console(stderr=True)
    if not console.is_terminal:
        lines = _Lines(label, console)
        yield lines
        lines.stage("")
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[state]}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        yield _Bar(bar, bar.add_task(label, total=1, state="compiling"))


class _Bar:
    """The bar of a fit in a terminal."""

    def __init__(self, bar: Progress, task: TaskID):
        self._bar, self._task = bar, task

    def __call__(self, now: TrainingProgress) -> None:
        if now.is_over:
            self.stage(_AFTERWARDS)
        elif now.step:
            state = f"{now.step}/{now.steps}  {_state(now)}"
            self._bar.update(self._task, completed=now.step, total=now.steps, state=state)

    def stage(self, name: str) -> None:
        """Show what is done after the training, with a full bar."""
        total = self._bar.tasks[0].total
        self._bar.update(self._task, completed=total, state=name)


class _Lines:
    """Lines: at the start, after the first step, after each tenth of all steps, and after each
    stage that took long.
    """

    def __init__(self, label: str, console: Console):
        self._label, self._console = label, console
        self._tenth, self._is_again = -1, False
        self._stage, self._began = "", perf_counter()

    def __call__(self, now: TrainingProgress) -> None:
        if now.is_again and not self._is_again:
            self._tenth, self._is_again = -1, True
        tenth = 10 * now.step // max(now.steps, 1)
        if now.is_over:
            self.stage(_AFTERWARDS)
        elif not now.seconds:
            self._print(": compiling")
        elif tenth > self._tenth:
            self._tenth = tenth
            rest = max(now.steps - now.step, 0)
            seconds = (now.seconds - now.compile_seconds) / now.step * rest
            then = f"  {seconds:.0f} s left" if rest else ""
            self._print(f" {now.step}/{now.steps}  {_state(now)}{then}")

    def stage(self, name: str) -> None:
        """A line for the stage before this one, if it took long."""
        seconds = perf_counter() - self._began
        if self._stage and seconds > _LONG:
            self._print(f": {self._stage} took {seconds:.0f} s")
        self._stage, self._began = name, perf_counter()

    def _print(self, text: str) -> None:
        _print(self._console, self._label + text)


def _print(console: Console, line: str) -> None:
    with contextlib.suppress(OSError):  # a closed pipe must not end a training
        console.print(line, soft_wrap=True, highlight=False)


def _state(now: TrainingProgress) -> str:
    running = now.seconds - now.compile_seconds
    rate = f"{(now.step - 1) / running:.1f}/s" if now.step > 1 and running > 0 else ""
    best = "" if now.best_validation is None else f"best {now.best_validation:.4g}"
    skipped = f"skipped {now.skipped}" if now.skipped else ""
    again = "again, with all rows" if now.is_again else ""
    return "  ".join(part for part in (again, f"loss {now.loss:.4g}", best, skipped, rate) if part)
