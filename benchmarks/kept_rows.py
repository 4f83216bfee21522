"""Rows of a long benchmark, kept as they are made, so that an interrupted one continues."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "results"


def kept_rows(
    name: str, jobs: Iterable[tuple[Hashable, ...]], compute: Callable[..., dict[str, Any]]
) -> dict[tuple[Hashable, ...], dict[str, Any]]:
    """The row `compute(*job)` of each job; from `results/NAME.jsonl` where it was made."""
    path, source = _FOLDER / f"{name}.jsonl", _source(inspect.getfile(compute))
    _FOLDER.mkdir(exist_ok=True)
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    whole = [json.loads(line) for line in lines if line.endswith("\n")]
    rows = [row for row in whole if row["source"] == source]
    done = {tuple(row["job"]): row for row in rows}
    for job in jobs:
        if job in done:
            continue
        row = done[job] = {"job": list(job), **compute(*job), "source": source}
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)
    return done


def _source(file: str) -> str:
    """Digest of the package's source and of a benchmark's."""
    from physsm import _programs

    return _programs._digest(_programs._source(), Path(file).read_text())


def release_programs() -> None:
    """Forget compiled programs, so that many fits do not fill the memory."""
    import jax

    from physsm import _programs

    jax.clear_caches()
    _programs._compiled.clear()
