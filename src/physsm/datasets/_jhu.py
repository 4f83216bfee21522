"""COVID-19 tables of Johns Hopkins University: one row per region, one column per day.

Counts are cumulative. A country is the sum of its provinces. Populations are in a separate table,
in the rows without a province.
"""

from __future__ import annotations

import datetime
import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from jaxtyping import Float

from physsm._errors import DataError
from physsm.data.files import read_file

_FIRST_COLUMNS = ["Province/State", "Country/Region", "Lat", "Long"]
_PEOPLE_COLUMNS = ["Province_State", "Admin2", "Country_Region", "Population"]


@dataclass(frozen=True, eq=False)
class Counts:
    """Cumulative counts of all countries, by day."""

    countries: tuple[str, ...]
    first_day: datetime.date
    persons: Float[np.ndarray, "countries days"]


def read_counts(path: Path) -> Counts:
    """Counts of one of the global tables."""
    table = _read(path, _FIRST_COLUMNS)
    days = [_day(path, name) for name in table.columns[len(_FIRST_COLUMNS) :]]
    if not days or any((later - day).days != 1 for day, later in itertools.pairwise(days)):
        raise DataError(f"{path}: the columns after {_FIRST_COLUMNS[-1]} are not one day each")
    names = table.columns[len(_FIRST_COLUMNS) :]
    numbers = _numbers(path, table, names)
    countries = table["Country/Region"].to_list()
    if any(country is None for country in countries):
        raise DataError(f"{path}, row {countries.index(None) + 2}: there is no country")
    known = sorted(set(countries))
    index = {country: i for i, country in enumerate(known)}
    persons = np.zeros((len(known), len(days)))
    np.add.at(persons, [index[country] for country in countries], numbers)
    return Counts(tuple(known), days[0], persons)


def read_populations(path: Path) -> dict[str, float]:
    """Population of each country in the table."""
    table = _read(path, _PEOPLE_COLUMNS)
    whole = table.with_row_index("row").filter(
        pl.col("Province_State").is_null()
        & pl.col("Admin2").is_null()
        & pl.col("Population").is_not_null()
    )
    people = whole["Population"].cast(pl.Float64, strict=False)
    wrong = (
        ~(people.is_finite() & (people >= 0)).fill_null(False) | whole["Country_Region"].is_null()
    )
    if wrong.any():
        row = int(whole["row"][int(wrong.arg_true()[0])]) + 2
        raise DataError(f"{path}, row {row}: a country and its population are needed")
    return dict(zip(whole["Country_Region"].to_list(), people.to_list(), strict=True))


def _read(path: Path, first: list[str]) -> pl.DataFrame:
    table = read_file(path).frame
    if missing := [name for name in first if name not in table.columns]:
        raise DataError(
            f"{path} has no column {missing[0]}",
            hint="these are the global time series and the look-up table of CSSE at Johns Hopkins",
        )
    return table


def _day(path: Path, name: str) -> datetime.date:
    try:
        month, day, year = (int(part) for part in name.split("/"))
        return datetime.date(2000 + year, month, day)
    except (ValueError, OverflowError):
        raise DataError(f"{path}: the column {name!r} is not a day such as 1/22/20") from None


def _numbers(path: Path, table: pl.DataFrame, columns: list[str]) -> np.ndarray:
    cast = table.select(pl.col(columns).cast(pl.Float64, strict=False))
    numbers = cast.to_numpy()
    wrong = ~np.isfinite(numbers) | (numbers < 0)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        cell = table[columns[column]][int(row)]
        raise DataError(
            f"{path}, row {row + 2}, column {columns[column]}: {cell!r} is not a number of persons"
        )
    return numbers
