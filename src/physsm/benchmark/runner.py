"""Units run one after the other, each in a program of its own.

So each has its own peak of memory, starts as a new program does, and takes nothing down with it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from physsm._errors import PhyssmError
from physsm.benchmark.experiment import Unit
from physsm.benchmark.store import Store
from physsm.training.loop import Progress


@dataclass(frozen=True)
class Outcome:
    """What became of a unit: its result, or why there is none."""

    unit: Unit
    state: Literal["done", "known", "failed"]
    result: dict[str, Any] | None = None
    error: str | None = None


def run_units(
    asked: Iterable[Unit],
    store: Store,
    *,
    data_dir: Path | None,
    started: Callable[[Unit], None],
    ended: Callable[[Outcome], None],
    report: Callable[[Progress], None],
) -> list[Outcome]:
    """Run what has no result yet. A unit that fails is told of and does not stop the others."""
    outcomes = []
    with store.held():
        for unit in asked:
            if store.has(unit):
                outcome = Outcome(unit, "known")
            else:
                started(unit)
                outcome = _run_apart(unit, store, data_dir, report)
            outcomes.append(outcome)
            ended(outcome)
    return outcomes


def _run_apart(
    unit: Unit, store: Store, data_dir: Path | None, report: Callable[[Progress], None]
) -> Outcome:
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    child = context.Process(
        target=_in_child, args=(unit, store.unfinished(unit), data_dir, sending), daemon=True
    )
    child.start()
    sending.close()
    try:
        kind, content = _last_message(receiving, report)
    finally:
        if child.is_alive():
            child.join(timeout=10)
        if child.is_alive():
            child.terminate()
    if kind == "result":
        store.keep(unit, content)
        return Outcome(unit, "done", result=content)
    return Outcome(unit, "failed", error=content)


def _last_message(
    receiving: Connection, report: Callable[[Progress], None]
) -> tuple[Literal["result", "error"], Any]:
    """Pass progress on until the unit ends."""
    while True:
        try:
            kind, content = receiving.recv()
        except EOFError:
            return "error", "it was ended from outside, or there was not enough memory"
        if kind == "progress":
            report(content)
        else:
            return kind, content


def _in_child(unit: Unit, folder: Path, data_dir: Path | None, sending: Connection) -> None:
    """Run a unit and send its progress, then its result or what went wrong."""
    # XLA warns at length of its own hints about the processor.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from physsm._compile_cache import use_compile_cache
    from physsm.benchmark.unit import run_unit

    use_compile_cache()

    def tell(now: Progress) -> None:
        sending.send(("progress", now))

    # The one that asked may be gone, or may have been stopped by Ctrl-C together with this program.
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        try:
            answer = ("result", run_unit(unit, folder, data_dir=data_dir, report=tell))
        except PhyssmError as error:
            answer = ("error", str(error))
        except (BrokenPipeError, KeyboardInterrupt):
            raise
        except Exception as error:  # whatever it is, the other units go on
            answer = ("error", f"{type(error).__name__}: {error}")
        sending.send(answer)
