"""Layout of the user's table: its column names and its clock, so that results look like it.

Polars is imported where it is used: `physsm --help` must not wait for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float, Int, Shaped

from physsm._errors import DataError

if TYPE_CHECKING:
    import polars as pl

TimeUnit = Literal["s", "min", "h", "d"]

MICROSECONDS: dict[TimeUnit, int] = {
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}


@dataclass(frozen=True)
class Layout:
    """Column names and clock of a table.

    Datetimes become numbers: the time since `origin` (ISO 8601) in `time_unit`. `origin` is None
    where the table's own times are numbers.
    """

    time: str = "time"
    series: str | None = None
    integer_ids: bool = False
    origin: str | None = None
    time_unit: TimeUnit = "s"

    def long_frame(
        self,
        ids: Sequence[str],
        times: Float[np.ndarray, "series steps"],
        lengths: Int[np.ndarray, " series"],
        columns: Sequence[tuple[str, Shaped[np.ndarray, "series steps"]]],
    ) -> pl.DataFrame:
        """Padded arrays as a table in long form: series (if the table had it), time, `columns`.

        Times are numbers or datetimes as in the user's table, and ids integers where they were.
        """
        import polars as pl

        valid = np.arange(times.shape[1]) < lengths[:, None]
        table = []
        if self.series is not None:
            labels = pl.Series(self.series, ids, pl.String)
            labels = labels.cast(pl.Int64) if self.integer_ids else labels
            table.append(labels.gather(np.repeat(np.arange(len(ids)), lengths)))
        if self.origin is None:
            table.append(pl.Series(self.time, times[valid]))
        else:
            clock = to_datetimes(times[valid], self.origin, self.time_unit)
            table.append(clock.alias(self.time))
        table += [pl.Series(name, values[valid]) for name, values in columns]
        _check_names([column.name for column in table])
        return pl.DataFrame(table)


def to_datetimes(times: Float[np.ndarray, " rows"], origin: str, unit: TimeUnit) -> pl.Series:
    """Datetimes of numeric times, exact to the microsecond up to 70 years from the origin."""
    import polars as pl

    moments = parse_origin(origin) + np.rint(times * MICROSECONDS[unit]).astype(np.int64)
    zone = "UTC" if origin.endswith("Z") else None
    return pl.Series(moments).cast(pl.Datetime("us", zone))


def parse_origin(origin: str) -> int:
    """Microseconds from 1970 to an origin in ISO 8601."""
    import polars as pl

    moments = pl.Series([origin.removesuffix("Z")]).str.to_datetime(time_unit="us")
    return int(moments.to_physical().item())


def _check_names(names: Sequence[str]) -> None:
    repeated = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if repeated is not None:
        raise DataError(
            "the table would have two columns of this name",
            column=repeated,
            hint="rename the channel of this name",
        )
