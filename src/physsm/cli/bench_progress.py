"""Progress of `physsm bench run`: a bar in a terminal, a line per job in a file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from physsm.benchmark.experiment import Job
from physsm.benchmark.runner import Outcome
from physsm.training.loop import Progress as TrainingProgress

Watchers = tuple[
    Callable[[Job], None], Callable[[Outcome], None], Callable[[TrainingProgress], None]
]


@contextlib.contextmanager
def watching(total: int) -> Iterator[Watchers]:
    """Functions to call when a job starts, when it ends, and during its training."""
    console = Console(stderr=True, highlight=False)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[state]}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=total, state="")

        def started(job: Job) -> None:
            bar.update(task, description=job.name, state="")

        def ended(outcome: Outcome) -> None:
            bar.advance(task)
            if outcome.state != "known":
                number = f"{bar.tasks[0].completed:.0f}/{total}"
                console.print(f"{number} {_line(outcome)}", soft_wrap=True)

        def report(now: TrainingProgress) -> None:
            bar.update(task, state=f"step {now.step}/{now.steps}  loss {now.loss:.4g}")

        yield started, ended, report


def _line(outcome: Outcome) -> str:
    if outcome.result is None:
        return f"{outcome.job.name}: failed"
    metrics, seconds = outcome.result["metrics"], outcome.result["seconds"]["all"]
    error = metrics["extrap_mae"]
    shown = "–" if error is None else f"{error:.4f}"
    return f"{outcome.job.name}: extrapolation MAE {shown}, {seconds:.0f} s"
