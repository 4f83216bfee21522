"""`physsm forecast`: forecasts of a run as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from physsm.cli.options import Debug, Json
from physsm.cli.output import show_error, show_json, show_plain
from physsm.cli.paths import keep_inputs


def forecast(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    table: Annotated[Path, typer.Argument(help="The history: a table like that of the fit.")],
    out: Annotated[Path, typer.Option("--out", help="The forecast: .csv or .parquet.")],
    horizon: Annotated[
        int | None, typer.Option(help="Number of time steps, at the median gap.", min=1)
    ] = None,
    times: Annotated[
        Path | None, typer.Option(help="A table of future times, with their controls.")
    ] = None,
    coverage: Annotated[float, typer.Option(help="Nominal coverage of the intervals.")] = 0.9,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Forecast the series of a table."""
    from physsm._compile_cache import prepare_command
    from physsm._errors import ConfigError
    from physsm.benchmark.named_data import named_data
    from physsm.data.files import write_table
    from physsm.models._base import load

    if named_data(str(table)) is not None:
        raise ConfigError(
            f"{table} is a data set, and physsm forecast takes a table; "
            f"physsm evaluate {run} {table} scores forecasts of its test part"
        )
    if (horizon is None) == (times is None):
        raise typer.BadParameter("give one of --horizon and --times")
    keep_inputs(out, table, times)
    prepare_command()
    fitted = load(run)
    history = fitted.check(table)
    future = fitted.forecast(history, times=times, horizon=horizon, coverage=coverage)
    frame = future.to_frame()
    write_table(frame, out)
    for warning in future.warnings:
        show_error(warning, kind="warning")
    summary = {
        "out": str(out),
        "series": len(future.ids),
        "rows": int(future.lengths.sum()),
        "coverage": coverage,
        "warnings": list(future.warnings),
    }
    if json:
        show_json(summary)
    else:
        show_plain(f"{summary['rows']} rows of {summary['series']} series are in {out}.")
