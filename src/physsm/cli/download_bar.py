"""Progress of a download on standard error: a bar in a terminal, else a line at each tenth."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from physsm.cli.data_tables import size

_SOON = 2.0  # s: shorter downloads print no lines


@contextlib.contextmanager
def download_bar(label: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar; yields the function that a download reports to."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(label, console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(compact=True),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=None)

        def report(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield report


def _lines(label: str, console: Console) -> Callable[[int, int], None]:
    start = time.monotonic()
    reported = 0

    def report(done: int, total: int) -> None:
        nonlocal reported
        tenth = 10 * done // max(total, 1)
        passed = time.monotonic() - start
        if tenth > reported and passed > _SOON:
            reported = tenth
            left = passed / done * (total - done)
            with contextlib.suppress(OSError):  # a closed pipe must not end a download
                line = f"{label} {size(done)} of {size(total)}  {left:.0f} s left"
                console.print(line, soft_wrap=True, highlight=False)

    return report
