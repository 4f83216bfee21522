"""A table of your own: read it, look at it, fit a model, forecast, write the forecast as a table.

The command line does the same: `physsm fit springs.csv --physics spring.phys --out run`, then
`physsm forecast run springs.csv --times future.csv --out prediction.csv`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
from spring import PHYSICS, fit, force_at, simulate

import physsm
from physsm.data.table import panel_frame


def main(quick: bool) -> None:
    """Write a CSV file, as you would have one, and go from there to a table of forecasts."""
    with TemporaryDirectory() as folder:
        table = Path(folder) / "springs.csv"
        panel_frame(simulate()).write_csv(table)  # series, time, x, force; empty where missing

        panel = physsm.read_table(table, controls=["force"])
        print(panel)

        system = physsm.System.parse(PHYSICS)
        print("unknowns:", ", ".join(unknown.name for unknown in system.unknowns))
        fitted = fit(quick)  # physsm.PhySSM(system).fit(panel)

        # Future times of each series, with the force that will act then.
        rows = [
            (name, float(times[length - 1]) + 0.2 * step)
            for name, times, length in zip(panel.ids, panel.times, panel.lengths, strict=True)
            for step in range(1, 11)
        ]
        future = pl.DataFrame(rows, schema=["series", "time"], orient="row")
        future = future.with_columns(force=pl.Series(force_at(future["time"].to_numpy())))
        forecast = fitted.forecast(panel, times=future, coverage=0.9)
        print(forecast.to_frame().head(5))
        forecast.to_frame().write_csv(Path(folder) / "prediction.csv")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few training steps")
    main(parser.parse_args().quick)
