"""Options that name the columns of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from physsm._errors import ConfigError

if TYPE_CHECKING:
    from physsm._values import Panel

TimeColumn = Annotated[str | None, typer.Option("--time", help="The column of times.")]
SeriesColumn = Annotated[
    str | None, typer.Option("--series", help="The column that names the series.")
]
ChannelColumns = Annotated[str | None, typer.Option("--channels", help="Measured columns: a,b.")]
ControlColumns = Annotated[
    str | None,
    typer.Option("--controls", help="Control columns; by default those of the physics."),
]
TimeUnit = Annotated[
    str | None, typer.Option("--time-unit", help="Unit of datetimes: s (default), min, h or d.")
]


def refuse_columns(options: Mapping[str, str | None], data: str) -> None:
    """Refuse options that name columns, for a data set: its columns are fixed."""
    if given := [f"--{name}" for name, value in options.items() if value]:
        raise ConfigError(f"{', '.join(given)}: only for a table, and {data} is a data set")


def read_columns(
    path: Path, options: Mapping[str, str | None], controls: Sequence[str] | None = None
) -> Panel:
    """Read a table with the columns that options name; `controls` are those of the physics, which
    the option `controls` overrides.
    """
    from physsm.data.table import read_table

    asked = _names(options["controls"])
    return read_table(
        path,
        time=options["time"],
        series=options["series"],
        channels=_names(options["channels"]),
        controls=controls if asked is None else asked,
        time_unit=options["time-unit"] or "s",  # type: ignore[arg-type]
    )


def _names(text: str | None) -> list[str] | None:
    """Names that are separated by commas; None without an option."""
    return [name.strip() for name in text.split(",") if name.strip()] if text else None
