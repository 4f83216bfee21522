"""COVID-19 as susceptible, infected and removed shares of a population, one row per day.

Protocols: `paper` (the eight countries of the paper as published), `strict` (the same countries,
no statistic of the test countries, all test windows) and `world` (43 other countries, split by
country, because two test countries are too few). `further` scores models of the paper's countries
on those 43, in the paper's scale.

Reports follow the week: fewer tests on Sundays, corrections in bulk. Nothing is smoothed here; a
model sees the raw reports.
"""

from __future__ import annotations

import csv
import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float

from physsm._errors import DataError
from physsm._values import Layout, Panel, Series
from physsm.data.scale import channel_moments
from physsm.data.table import read_table
from physsm.data.window import Sizes, Windows
from physsm.datasets._dataset import Dataset, Part, RawRows, Split, check_whole
from physsm.datasets._jhu import Counts, read_counts, read_populations
from physsm.datasets._sources import locate

CONTEXT, HORIZON = 160, 80  # rows
DAYS = 300  # of each country, from the first on which 0.1 % of its population were confirmed
KEPT_DAYS = 270  # days after a tenth is dropped at random

TRAIN = ("Armenia", "Brazil", "France", "Germany", "Gabon")
VALIDATION = ("UnitedKingdom",)
TEST = ("Ireland", "Spain")

_CHANNELS = ("S", "I", "R")
_TABLE, _JHU = "covid_sir8", "covid_jhu"
_PAPER_DAY = 0.05  # length of a day in the time unit of the paper
_ONSET = 0.001  # confirmed share of the population on the first day
_LEAST_PEOPLE = 1e6
_LEAST_REPORTED = 0.9
_LARGEST_CORRECTION = 0.05


@dataclass(frozen=True, eq=False)
class Epidemic:
    """Epidemic of one country: susceptible, infected and removed shares of its population."""

    country: str
    first_day: datetime.date
    shares: Float[np.ndarray, "days 3"]


def read_epidemic(path: Path, country: str) -> Epidemic:
    """Epidemic of a table with the columns Date, Susceptible, Infected and Removed (persons)."""
    persons = ["Susceptible", "Infected", "Removed"]
    panel = read_table(path, time="Date", channels=persons, time_unit="d")
    one = panel[0]
    if len(panel) > 1 or panel.layout.origin is None:
        raise DataError(f"{path}: the column Date must hold one date per row, each once")
    if np.isnan(one.values).any() or (one.values < 0).any():
        row = int(np.argwhere(~(one.values >= 0))[0, 0])
        raise DataError(f"{path}, row {row + 2}: a number of persons is missing or negative")
    if (np.diff(one.times) != 1).any():
        row = int(np.flatnonzero(np.diff(one.times) != 1)[0])
        raise DataError(f"{path}, row {row + 3}: this is not the day after that of the row before")
    people = one.values.sum(1)
    if people[0] == 0 or (people != people[0]).any():
        row = int(np.argmax(people != people[0]))
        raise DataError(
            f"{path}, row {row + 2}: the three add up to {people[row]:.0f} persons, which must be "
            "the same in every row and not 0"
        )
    first = datetime.date.fromisoformat(panel.layout.origin[:10])
    return Epidemic(country, first, one.values / people[0])


def world_epidemics(data_dir: str | Path | None = None) -> dict[str, Epidemic]:
    """Countries of the tables of Johns Hopkins University with sufficient reports.

    The rule, which uses reports and never forecasts: none of the paper's eight countries; at least
    a million people; 300 days on record from the first on which more than 0.1 % of them were
    confirmed; on nine in ten of these days more confirmed and more recovered persons than the day
    before, and on none fewer; no day on which either grew by more than a twentieth of all that were
    confirmed at the end; never fewer confirmed than removed.
    """
    confirmed, deaths, recovered = (
        read_counts(locate(_JHU, f"time_series_covid19_{kind}_global.csv", data_dir))
        for kind in ("confirmed", "deaths", "recovered")
    )
    people = read_populations(locate(_JHU, "UID_ISO_FIPS_LookUp_Table.csv", data_dir))
    if not confirmed.countries == deaths.countries == recovered.countries:
        raise DataError("the tables of confirmed, deaths and recovered have different countries")
    days = {(table.first_day, table.persons.shape[1]) for table in (confirmed, deaths, recovered)}
    if len(days) > 1:
        raise DataError("the tables of confirmed, deaths and recovered have different days")
    found = {}
    eight = {"United Kingdom", *TRAIN, *VALIDATION, *TEST}
    for i, country in enumerate(confirmed.countries):
        if country in eight:
            continue
        removed = deaths.persons[i] + recovered.persons[i]
        one = _usable(
            country, people.get(country, 0.0), confirmed, i, removed, recovered.persons[i]
        )
        if one is not None:
            found[country] = one
    return found


def _usable(
    country: str,
    people: float,
    confirmed: Counts,
    place: int,
    removed: np.ndarray,
    recovered: np.ndarray,
) -> Epidemic | None:
    """First 300 days of a country, if its reports pass the rule of `world_epidemics`."""
    cases = confirmed.persons[place]
    onset = int(np.argmax(cases > _ONSET * people))
    if people < _LEAST_PEOPLE or cases[onset] <= _ONSET * people or len(cases) < onset + DAYS:
        return None
    days = slice(onset, onset + DAYS)
    cases, removed = cases[days], removed[days]
    growth = np.diff([cases, recovered[days]])
    reported = (growth > 0).mean(1).min() >= _LEAST_REPORTED
    steady = growth.min() >= 0 and growth.max() <= _LARGEST_CORRECTION * cases[-1]
    if not (reported and steady and (cases >= removed).all()):
        return None
    first = confirmed.first_day + datetime.timedelta(days=onset)
    shares = np.stack([people - cases, cases - removed, removed], 1) / people
    return Epidemic(country, first, shares)


def paper(*, seed: int = 0, data_dir: str | Path | None = None) -> Split:
    """Published protocol: a day is 0.05, errors are in standard deviations over all eight
    countries, including the test countries, and each test country has one window.
    """
    found = _eight(data_dir)
    shares = np.concatenate([one.shares for one in found.values()])

    def part(countries: Sequence[str], windows: int) -> Part:
        return _part([found[name] for name in countries], seed, _PAPER_DAY, windows=windows)

    return Split(
        train=part(TRAIN, 30),
        validation=part(VALIDATION, 1),
        test=part(TEST, 1),
        sizes=Sizes(CONTEXT, HORIZON, 1),
        unit=shares.std(0),
        unit_words="the standard deviation over all eight countries",
        notes=("The scale of the errors has seen the test countries; there are two test windows.",),
    )


def strict(*, stride: int = 1, seed: int = 0, data_dir: str | Path | None = None) -> Split:
    """The paper's countries and days; errors are in standard deviations of the training countries,
    and all windows of the test countries are scored.
    """
    found = _eight(data_dir)
    parts = [[found[name] for name in part] for part in (TRAIN, VALIDATION, TEST)]
    return _strict_split(parts, stride, seed)


def world(*, stride: int = 10, seed: int = 0, data_dir: str | Path | None = None) -> Split:
    """Forty-three further countries, chosen by the rule of `world_epidemics`; the file
    `covid_world.csv` assigns them to parts.
    """
    found = _listed_epidemics(data_dir)
    parts = [[found[name] for name in names] for names in world_parts().values()]
    return _strict_split(parts, stride, seed)


def further(*, seed: int = 0, data_dir: str | Path | None = None) -> Split:
    """Transfer from the paper's countries to all 43 others: training and validation as in `paper`,
    one window of each further country for test, errors in the paper's scale.
    """
    published = paper(seed=seed, data_dir=data_dir)
    others = list(_listed_epidemics(data_dir).values())
    return replace(published, test=_part(others, seed, _PAPER_DAY, windows=1), notes=())


def _listed_epidemics(data_dir: str | Path | None) -> dict[str, Epidemic]:
    """Epidemics of all countries of `world_parts`."""
    found = world_epidemics(data_dir)
    listed = [name for names in world_parts().values() for name in names]
    if missing := [name for name in listed if name not in found]:
        raise DataError(
            f"the tables have no usable reports of {missing[0]}",
            hint="covid_world.csv was made from the state of 2021-07-15: see physsm data get",
        )
    return {name: found[name] for name in listed}


def world_parts() -> dict[str, list[str]]:
    """Countries of the parts train, validation and test."""
    text = resources.files("physsm.datasets").joinpath("covid_world.csv").read_text("utf-8")
    parts: dict[str, list[str]] = {"train": [], "validation": [], "test": []}
    for row in csv.DictReader(text.splitlines()):
        parts[row["part"]].append(row["country"])
    return parts


DATASET: Final = Dataset(
    name="covid",
    summary="COVID-19 as shares of a population, daily: eight countries of the paper, 43 others",
    system="sir_conserving",
    protocols={"paper": paper, "strict": strict, "world": world, "further": further},
    sources=(_TABLE, _JHU),
)


def _eight(data_dir: str | Path | None) -> Mapping[str, Epidemic]:
    found = {}
    for country in (*TRAIN, *VALIDATION, *TEST):
        path = locate(_TABLE, f"sir_data_{country}.csv", data_dir)
        one = read_epidemic(path, country)
        if len(one.shares) < DAYS:
            raise DataError(f"{path} has {len(one.shares)} days, and {DAYS} are needed")
        found[country] = Epidemic(country, one.first_day, one.shares[:DAYS])
    return found


def _strict_split(parts: Sequence[Sequence[Epidemic]], stride: int, seed: int) -> Split:
    check_whole(stride, "stride", "covid", least=1)
    train, validation, test = (_part(part, seed, 1.0, stride=stride) for part in parts)
    _, scale = channel_moments(train.panel)
    return Split(
        train,
        validation,
        test,
        Sizes(CONTEXT, HORIZON, stride),
        unit=scale,
        unit_words="the standard deviation in the training countries",
    )


def _part(
    epidemics: Sequence[Epidemic],
    seed: int,
    day: float,
    *,
    stride: int = 1,
    windows: int | None = None,
) -> Part:
    """Part of countries without a random tenth of their days, and its windows.

    The dropped days depend on the country and the seed, not on the other countries of the part.
    """
    check_whole(seed, "seed", "covid", least=0)
    series, raw = [], []
    for one in epidemics:
        name = [seed, *one.country.encode()]
        days = np.sort(np.random.default_rng(name).permutation(DAYS)[:KEPT_DAYS])
        nothing = np.zeros((KEPT_DAYS, 0))
        series.append(Series(one.country, days * day, one.shares[days], nothing))
        raw.append(RawRows(one.country, days))
    starts = np.arange(0, KEPT_DAYS - CONTEXT - HORIZON + 1, stride)[:windows]
    number = np.repeat(np.arange(len(series)), len(starts))
    start = np.tile(starts, len(series))
    chosen = Windows(number, start, start + CONTEXT, start + CONTEXT + HORIZON)
    layout = Layout(time="day" if day == 1 else "time", series="country")
    return Part(Panel.from_series(series, _CHANNELS, (), layout), chosen, tuple(raw))
