"""Jobs run one after the other, each in its own process.

So each has its own peak memory and starts fresh, and a crash cannot take the others down.
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
from physsm.benchmark.experiment import Job
from physsm.benchmark.store import Store
from physsm.training.loop import Progress


@dataclass(frozen=True)
class Outcome:
    """The end of a job: its result, or the error that prevented it. `known`: there was a result."""

    job: Job
    state: Literal["done", "known", "failed"]
    result: dict[str, Any] | None = None
    error: str | None = None


def run_jobs(
    jobs: Iterable[Job],
    store: Store,
    *,
    data_dir: Path | None,
    started: Callable[[Job], None],
    ended: Callable[[Outcome], None],
    report: Callable[[Progress], None],
) -> list[Outcome]:
    """Run the jobs that have no result yet. A failure is reported and does not stop the others."""
    outcomes = []
    with store.locked():
        for job in jobs:
            if store.has(job):
                outcome = Outcome(job, "known")
            else:
                started(job)
                outcome = _run_in_process(job, store, data_dir, report)
            outcomes.append(outcome)
            ended(outcome)
    return outcomes


def _run_in_process(
    job: Job, store: Store, data_dir: Path | None, report: Callable[[Progress], None]
) -> Outcome:
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    child = context.Process(
        target=_in_child, args=(job, store.unfinished(job), data_dir, sending), daemon=True
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
        store.write(job, content)
        return Outcome(job, "done", result=content)
    return Outcome(job, "failed", error=content)


def _last_message(
    receiving: Connection, report: Callable[[Progress], None]
) -> tuple[Literal["result", "error"], Any]:
    """Pass progress on until the job ends."""
    while True:
        try:
            kind, content = receiving.recv()
        except EOFError:
            return "error", "its process was killed, perhaps for lack of memory"
        if kind == "progress":
            report(content)
        else:
            return kind, content


def _in_child(job: Job, folder: Path, data_dir: Path | None, sending: Connection) -> None:
    """Run a job and send its progress, then its result or its error."""
    # XLA prints long warnings about its own tuning hints for the processor.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from physsm._compile_cache import prepare_command
    from physsm.benchmark.job import run_job

    prepare_command()

    def send_progress(now: Progress) -> None:
        sending.send(("progress", now))

    # The parent may have ended, or Ctrl-C may have stopped it together with this process.
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        try:
            message = ("result", run_job(job, folder, data_dir=data_dir, report=send_progress))
        except PhyssmError as error:
            message = ("error", str(error))
        except (BrokenPipeError, KeyboardInterrupt):
            raise
        except Exception as error:  # an unforeseen error must not stop the other jobs
            message = ("error", f"{type(error).__name__}: {error}")
        sending.send(message)
