"""Series from the rows of a table: grouped by id, in table order, with increasing times."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
from jaxtyping import Float, Int

from physsm._values import Series
from physsm.data.cells import read_ids
from physsm.data.raw import RawTable, first_true


class Groups(NamedTuple):
    """Rows of each series.

    `order` lists all rows, series by series; those of series k are `order[bounds[k]:bounds[k+1]]`
    in table order. Series are in the order of their first rows.
    """

    ids: tuple[str, ...]
    integer_ids: bool
    order: Int[np.ndarray, " rows"]
    bounds: Int[np.ndarray, " series+1"]

    def rows(self, k: int) -> Int[np.ndarray, " steps"]:
        """Rows of series k."""
        return self.order[self.bounds[k] : self.bounds[k + 1]]


def group_rows(table: RawTable, series: str | None) -> Groups:
    """Rows grouped by the column `series`; without one, all rows are the series "0"."""
    height = table.frame.height
    if series is None:
        return Groups(("0",), False, np.arange(height), np.array([0, height]))
    ids, integer_ids = read_ids(table, series)
    unique = ids.unique(maintain_order=True)
    numbered = pl.DataFrame({"id": unique, "number": np.arange(len(unique))})
    joined = pl.DataFrame({"id": ids}).join(numbered, on="id", how="left", maintain_order="left")
    number = joined["number"].to_numpy()
    bounds = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=len(unique)))])
    return Groups(tuple(unique.to_list()), integer_ids, np.argsort(number, kind="stable"), bounds)


def check_increasing(
    table: RawTable, groups: Groups, times: Float[np.ndarray, " rows"], column: str
) -> None:
    """Raise an error at the first row whose time is not after the previous one of its series."""
    sorted_times = times[groups.order]
    increases = sorted_times[1:] > sorted_times[:-1]
    increases[groups.bounds[1:-1] - 1] = True  # from one series to the next
    faulty = np.flatnonzero(~increases)
    if faulty.size == 0:
        return
    first = faulty[groups.order[faulty + 1].argmin()]
    before, after = int(groups.order[first]), int(groups.order[first + 1])
    where = _in_series(groups, int(np.searchsorted(groups.bounds, first, side="right")) - 1)
    now, then = table.cell(column, after), table.cell(column, before)
    if times[after] == times[before]:
        raise table.error(
            f"the time {now} is repeated{where}, first in row {table.rows[before]}",
            at=after,
            column=column,
            hint="keep one row for each time; if the table holds several series, name the column "
            "of their ids with series or --series",
        )
    raise table.error(
        f"the time decreases{where}: {now} comes after {then} in row {table.rows[before]}",
        at=after,
        column=column,
        hint="sort the rows by time; if the table holds several series, name the column of their "
        "ids with series or --series",
    )


def check_long_enough(table: RawTable, groups: Groups) -> None:
    """Raise an error at a series of one row."""
    short = first_true(np.diff(groups.bounds) < 2)
    if short is not None:
        raise table.error(
            f"series {groups.ids[short]} has only one row",
            at=int(groups.rows(short)[0]),
            hint="a series needs at least two; remove it or add rows",
        )


def cut_series(
    groups: Groups,
    times: Float[np.ndarray, " rows"],
    values: Float[np.ndarray, "rows channels"],
    controls: Float[np.ndarray, "rows controls"],
) -> Iterator[Series]:
    """Series, one after the other."""
    for k, name in enumerate(groups.ids):
        rows = groups.rows(k)
        yield Series(name, times[rows], values[rows], controls[rows])


def _in_series(groups: Groups, k: int) -> str:
    return f" in series {groups.ids[k]}" if len(groups.ids) > 1 else ""
