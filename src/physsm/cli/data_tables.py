"""Data sets, downloads and descriptions: as plain values, and as tables for the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from physsm._values import Layout, Panel
    from physsm.data.describe import Description
    from physsm.datasets._dataset import Dataset, Split
    from physsm.datasets._fetch import Fetched
    from physsm.datasets._sources import File, Source

_MOST_COLUMNS = 24  # of a description that are shown


def size(count: int) -> str:
    """A number of bytes with a unit."""
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= factor:
            return f"{count / factor:.1f} {unit}"
    return f"{count} B"


def dataset_row(dataset: Dataset, data_dir: Path | None) -> dict[str, Any]:
    """A data set as plain values. Files that no protocol reads do not count."""
    from physsm.datasets._sources import read_source

    sources = [read_source(name) for name in dataset.sources]
    files = [file for source in sources for file in source.needed]
    here = [folder for source in sources for folder in _folders(source, source.needed, data_dir)]
    return {
        "name": dataset.name,
        "summary": dataset.summary,
        "system": dataset.system,
        "protocols": list(dataset.protocols),
        "sources": [source.name for source in sources],
        "licences": list(dict.fromkeys(source.licence for source in sources)),
        "bytes": sum(file.bytes for file in files),
        "files": len(files),
        "files_here": len(here),
        "files_without_address": sum(file.url is None for file in files),
        "folders": list(dict.fromkeys(here)),
    }


def _folders(source: Source, files: Iterable[File], data_dir: Path | None) -> list[str]:
    """The folder of the source that holds each of some files, as far as they are present."""
    from physsm.datasets._sources import data_folders, present

    found, folders = present(source, data_dir), [p / source.name for p in data_folders(data_dir)]
    inside = [found[file.path] for file in files if file.path in found]
    return [str(next(f for f in folders if path.is_relative_to(f))) for path in inside]


def dataset_table(rows: Sequence[Mapping[str, Any]]) -> RenderableType:
    """One line per data set, and the folders of the files."""
    table = Table(box=None, header_style="bold")
    for heading in ("name", "protocols", "size", "files", "licence", "what"):
        right = heading in ("size", "files")
        table.add_column(
            heading, justify="right" if right else "left", no_wrap=heading in ("name", "size")
        )
    for row in rows:
        is_simulated = not row["sources"]
        table.add_row(
            row["name"],
            ", ".join(row["protocols"]),
            "simulated" if is_simulated else size(row["bytes"]),
            "" if is_simulated else _files(row),
            ", ".join(row["licences"]),
            row["summary"],
        )
    folders = [
        Text(f"{row['name']}: {', '.join(row['folders'])}") for row in rows if row["folders"]
    ]
    return Group(table, *folders)


def fetched_row(source: Source, result: Fetched, data_dir: Path | None) -> dict[str, Any]:
    """A download as plain values."""
    from physsm.datasets._sources import data_folders

    return {
        "source": source.name,
        "licence": source.licence,
        "terms": source.terms,
        "folder": str(data_folders(data_dir)[0] / source.name),
        "fetched": len(result.fetched),
        "here_before": len(result.before),
        "folders_before": list(dict.fromkeys(_folders(source, result.before, data_dir))),
        "without_address": [
            {"path": file.path, "how": file.how, "optional": file.optional}
            for file in result.without_address
        ],
    }


def describe_panel(panel: Panel) -> tuple[dict[str, Any], RenderableType]:
    """A description of a panel: as plain values and as a page for the terminal."""
    from physsm.data.describe import describe

    found = describe(panel)
    return _plain(found, panel.layout), Group(_facts(found, panel.layout), _column_table(found))


def describe_split(
    dataset: Dataset, protocol: str, split: Split
) -> tuple[dict[str, Any], RenderableType]:
    """A description of a data set under a protocol: training part, and windows of each part."""
    from physsm.data.describe import describe
    from physsm.datasets._dataset import share_of_touching_windows

    parts = {"train": split.train, "validation": split.validation, "test": split.test}
    found = {name: describe(part.panel) for name, part in parts.items()}
    shared = {
        name: None if part is split.train else share_of_touching_windows(split.train, part)
        for name, part in parts.items()
    }
    content = {
        "dataset": dataset.name,
        "protocol": protocol,
        "summary": dataset.summary,
        "context": split.sizes.context,
        "horizon": split.sizes.horizon,
        "test_horizon": split.test_horizon,
        "unit_of_errors": split.unit_words,
        "notes": list(split.notes),
        "parts": {
            name: {
                **_plain(found[name], part.panel.layout),
                "windows": part.windows.number,
                "share_that_touches_training": shared[name],
            }
            for name, part in parts.items()
        },
    }
    table = Table(box=None, header_style="bold")
    table.add_column("part", no_wrap=True)
    for heading in ("series", "rows", "windows", "sharing a sample with training"):
        table.add_column(heading, justify="right")
    for name, part in parts.items():
        share = shared[name]
        numbers = (found[name].series, found[name].rows, part.windows.number)
        touching = "" if share is None else f"{share:.0%}"
        table.add_row(name, *(f"{number:,}" for number in numbers), touching)
    longer = split.test_horizon if split.test_horizon > split.sizes.horizon else None
    page = Group(
        Text(f"{dataset.name}, {protocol} protocol: {dataset.summary}"),
        Text(
            f"windows: a context of {split.sizes.context} time steps, "
            f"a horizon of {split.sizes.horizon}" + (f"; {longer} in the test" if longer else "")
        ),
        *(Text(note) for note in split.notes),
        Text(),
        table,
        Text("\nThe training part:"),
        _facts(found["train"], split.train.panel.layout),
        _column_table(found["train"]),
    )
    return content, page


def _files(row: Mapping[str, Any]) -> str:
    if row["files_here"] == row["files"]:
        return f"{row['files']} present"
    return f"{row['files_here']} of {row['files']} present"


def _plain(found: Description, layout: Layout) -> dict[str, Any]:
    """A description as JSON takes it: NaN, of a column without values, becomes null."""
    from physsm.data.describe import QUANTILES

    content = asdict(found)
    content["lengths"] = dict(zip(("shortest", "median", "longest"), found.lengths, strict=True))
    shares = [f"{quantile:g}" for quantile in QUANTILES]
    content["gaps"] = None if found.gaps is None else dict(zip(shares, found.gaps, strict=True))
    for kind in ("channels", "controls"):
        content[kind] = [
            {
                key: None if isinstance(value, float) and math.isnan(value) else value
                for key, value in column.items()
            }
            for column in content[kind]
        ]
    content["time_column"] = layout.time
    content["time_origin"] = layout.origin
    content["time_unit"] = layout.time_unit if layout.origin else None
    return content


def _facts(found: Description, layout: Layout) -> Table:
    """Series, times and gaps: a line for each."""
    unit = f" {layout.time_unit}" if layout.origin else ""
    shortest, median, longest = found.lengths
    facts = {"series": f"{found.series:,}", "rows": f"{found.rows:,}"}
    if found.series > 1:
        facts["rows per series"] = f"{shortest:,} to {longest:,}, median {median:,g}"
    facts[f"times ({layout.time})"] = (
        f"{_moment(found.first_time, layout)} to {_moment(found.last_time, layout)}"
    )
    if found.gaps is not None and found.largest_gap is not None:
        least, low, middle, high, most = found.gaps
        facts["gaps"] = (
            f"median {middle:.4g}{unit}, 90% in {low:.4g} to {high:.4g}{unit}, "
            f"smallest {least:.4g}{unit}"
        )
        where = found.largest_gap
        facts["largest gap"] = (
            f"{most:.4g}{unit}"
            + (f", in series {where.series}" if found.series > 1 else "")
            + f", from {_moment(where.before, layout)} to {_moment(where.after, layout)}"
        )
    table = Table(box=None, show_header=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, fact in facts.items():
        table.add_row(escape(name), escape(fact))
    return table


def _column_table(found: Description) -> RenderableType:
    """A line for each channel and control, at most the first few."""
    table = Table(box=None, header_style="bold")
    table.add_column("column", no_wrap=True)
    table.add_column("role", no_wrap=True)
    for heading in ("missing", "min", "mean", "max", "std"):
        table.add_column(heading, justify="right", no_wrap=True)
    columns = [("channel", column) for column in found.channels]
    columns += [("control", column) for column in found.controls]
    for role, column in columns[:_MOST_COLUMNS]:
        numbers = (column.minimum, column.mean, column.maximum, column.std)
        cells = ("–" if math.isnan(number) else f"{number:.4g}" for number in numbers)
        table.add_row(escape(column.name), role, _share(column.missing), *cells)
    left = len(columns) - _MOST_COLUMNS
    return Group(table, Text(f"… and {left} more: --json has all")) if left > 0 else table


def _share(share: float) -> str:
    """A share of cells; nothing that is a little above 0 or below 1 is rounded to it."""
    if share in (0, 1):
        return f"{share:.0%}"
    return "<0.1%" if share < 0.001 else ">99.9%" if share > 0.999 else f"{share:.1%}"


def _moment(time: float, layout: Layout) -> str:
    if layout.origin is None:
        return f"{time:.10g}"
    import numpy as np

    from physsm._layout import to_datetimes

    (moment,) = to_datetimes(np.array([time]), layout.origin, layout.time_unit)
    text = moment.isoformat(sep=" ", timespec="auto").removesuffix("+00:00")
    return text.removesuffix(" 00:00:00")
