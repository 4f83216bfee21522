"""How `physsm bench run` shows where it is: a bar in a terminal, a line per unit in a file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from physsm.benchmark.experiment import Unit
from physsm.benchmark.runner import Outcome
from physsm.training.loop import Progress as Standing

Watchers = tuple[Callable[[Unit], None], Callable[[Outcome], None], Callable[[Standing], None]]


@contextlib.contextmanager
def watching(total: int) -> Iterator[Watchers]:
    """What to call when a unit starts, when it ends, and while it trains."""
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

        def started(unit: Unit) -> None:
            bar.update(task, description=unit.name, state="")

        def ended(outcome: Outcome) -> None:
            bar.advance(task)
            if outcome.state != "known":
                number = f"{bar.tasks[0].completed:.0f}/{total}"
                console.print(f"{number} {_line(outcome)}", soft_wrap=True)

        def report(now: Standing) -> None:
            bar.update(task, state=f"step {now.step}/{now.steps}  loss {now.loss:.4g}")

        yield started, ended, report


def _line(outcome: Outcome) -> str:
    if outcome.result is None:
        return f"{outcome.unit.name}: failed"
    metrics, seconds = outcome.result["metrics"], outcome.result["seconds"]["all"]
    error = metrics["extrap_mae"]
    shown = "–" if error is None else f"{error:.4f}"
    return f"{outcome.unit.name}: extrapolation MAE {shown}, {seconds:.0f} s"
