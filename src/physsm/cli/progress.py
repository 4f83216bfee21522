"""Progress of a training on standard error: a bar with loss, rate and time left in a terminal, else
a line at each tenth.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from physsm.training.loop import Progress as TrainingProgress


_AFTERWARDS = "now intervals and scores"  # they may take as long as a short training


@contextlib.contextmanager
def training_bar(label: str) -> Iterator[Callable[[TrainingProgress], None]]:
    """A progress bar; yields the function that a fit reports to."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(label, console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:.0f}/{task.total:.0f}  {task.fields[state]}"),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=1, state="compiling")

        def report(now: TrainingProgress) -> None:
            if now.step:
                state = _state(now) if now.step < now.steps else _AFTERWARDS
                bar.update(task, completed=now.step, total=now.steps, state=state)

        yield report


def _lines(label: str, console: Console) -> Callable[[TrainingProgress], None]:
    """A line at the start, after the first step, and after each tenth of all steps."""
    reported = -1

    def report(now: TrainingProgress) -> None:
        nonlocal reported
        tenth = 10 * now.step // max(now.steps, 1)
        if not now.seconds:
            _print(console, f"{label}: compiling")
        elif tenth > reported:
            reported = tenth
            seconds = (now.seconds - now.compile_seconds) / now.step * (now.steps - now.step)
            then = f"{seconds:.0f} s left" if now.step < now.steps else _AFTERWARDS
            _print(console, f"{label} {now.step}/{now.steps}  {_state(now)}  {then}")

    return report


def _print(console: Console, line: str) -> None:
    with contextlib.suppress(OSError):  # a closed pipe must not end a training
        console.print(line, soft_wrap=True, highlight=False)


def _state(now: TrainingProgress) -> str:
    running = now.seconds - now.compile_seconds
    rate = f"{(now.step - 1) / running:.1f}/s" if now.step > 1 and running > 0 else ""
    best = "" if now.best_validation is None else f"best {now.best_validation:.4g}"
    skipped = f"skipped {now.skipped}" if now.skipped else ""
    return "  ".join(part for part in (f"loss {now.loss:.4g}", best, skipped, rate) if part)
