"""Run benchmarks, print a table and write it to results/.

`make bench`: how fast it is (bench.json), and `python -m benchmarks methods` the methods beside it
(methods.json). `make promises`: how good it is (promises.json); `python -m benchmarks draws` is the
longest part of it.
"""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks import draws, invariance, methods, model, physics, promises, records, startup, tanks

GROUPS = {
    "bench": [startup, physics, model],
    "methods": [methods],
    "draws": [draws],
    "tanks": [tanks],
    "records": [records],
    "invariance": [invariance],
    "promises": [promises, records, tanks, invariance, draws],
}


def main(group: str) -> int:
    console = Console()
    modules = GROUPS[group]
    results = [m for module in track(modules, "measuring") for m in module.measures()]
    table = Table(box=None, header_style="bold")
    for heading in ("what", "seconds", "ratio", "limit", "yardstick", ""):
        table.add_column(
            heading, justify="right" if heading in ("seconds", "ratio", "limit") else "left"
        )
    for result in results:
        limit = "-" if result.limit is None else f"{result.limit:g}"
        verdict = "" if result.is_met else "over the limit"
        table.add_row(
            result.name,
            f"{result.seconds:.4f}",
            f"{result.ratio:.3f}",
            limit,
            result.yardstick,
            verdict,
        )
    console.print(table)
    path = Path(__file__).parent / "results" / f"{group}.json"
    path.parent.mkdir(exist_ok=True)
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    path.write_text(json.dumps({**machine, "measures": [asdict(r) for r in results]}, indent=2))
    console.print(f"written to {path.relative_to(Path.cwd())}")
    return 0 if all(result.is_met for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or ["bench"])))
