"""Writes the table of docs/methods.md from benchmarks/results/methods.json."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "methods.md"
RESULTS = ROOT / "benchmarks" / "results" / "methods.json"


def table(measures: list[dict]) -> str:
    """One line per method: seconds, times Phy-SSM's, memory."""
    lines = ["| method | a step (s) | of Phy-SSM's | peak memory (GB) |", "|---|---:|---:|---:|"]
    for step, memory in zip(measures[::2], measures[1::2], strict=True):
        name, _ = step["name"].split(":")
        gigabytes = re.search(r"\(([\d.]+) GB\)", memory["name"])
        assert gigabytes is not None
        lines.append(f"| `{name}` | {step['seconds']:.2f} | {step['ratio']:.2f} | {gigabytes[1]} |")
    return "\n".join(lines)


if __name__ == "__main__":
    measured = json.loads(RESULTS.read_text("utf-8"))["measures"]
    page = re.sub(
        r"(<!-- cost -->\n).*?(<!-- end -->)",
        lambda match: f"{match[1]}\n{table(measured)}\n\n{match[2]}",
        PAGE.read_text("utf-8"),
        flags=re.DOTALL,
    )
    PAGE.write_text(page, "utf-8")
