"""Writes tables into pages between their marks, from the files in results/."""

from __future__ import annotations

import re
from pathlib import Path

from physsm.benchmark.experiment import read_experiment
from physsm.benchmark.pages import to_markdown
from physsm.benchmark.store import Store
from physsm.benchmark.summary import summarise
from scripts.results_table import table as results_table

ROOT = Path(__file__).parent.parent
PAGES = (
    ROOT / "README.md",
    ROOT / "docs" / "index.md",
    ROOT / "docs" / "benchmarks.md",
    ROOT / "docs" / "comparison.md",
)
_MARKED = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_RESULTS = re.compile(r"(<!-- results -->\n).*?(<!-- end -->)", re.DOTALL)


def with_tables(page: str) -> str:
    """The page with each table as its results say."""

    def table(match: re.Match[str]) -> str:
        name, experiment = read_experiment(match[2])
        found, _ = Store(ROOT / "results" / name).results(name, experiment)
        sheets = summarise(found, experiment.published)
        return f"{match[1]}\n{to_markdown(sheets)}\n{match[3]}"

    page = _RESULTS.sub(lambda match: f"{match[1]}\n{results_table()}\n\n{match[2]}", page)
    return _MARKED.sub(table, page)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(with_tables(page.read_text("utf-8")), "utf-8")
