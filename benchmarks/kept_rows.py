"""Rows of a long benchmark, kept as they are made, so that an interrupted one continues."""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "results"


def kept_rows(
    name: str, jobs: Iterable[tuple[Hashable, ...]], compute: Callable[..., dict[str, Any]]
) -> dict[tuple[Hashable, ...], dict[str, Any]]:
    """The row `compute(*job)` of each job; from `results/NAME.jsonl` where it was made."""
    path, source = _FOLDER / f"{name}.jsonl", _source()
    _FOLDER.mkdir(exist_ok=True)
    lines = path.read_text().splitlines() if path.exists() else []
    rows = [row for row in map(json.loads, lines) if row["source"] == source]
    done = {tuple(row["job"]): row for row in rows}
    for job in jobs:
        if job in done:
            continue
        row = done[job] = {"job": list(job), **compute(*job), "source": source}
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)
    return done


def _source() -> str:
    """Digest of the package's source."""
    from physsm import _programs

    return _programs._source()


def release_programs() -> None:
    """Forget compiled programs, so that many fits do not fill the memory."""
    import jax

    from physsm import _programs

    jax.clear_caches()
    _programs._compiled.clear()
