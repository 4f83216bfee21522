"""A run that was fitted with a series column, on a table of one series without that column."""

import json
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest

from physsm import load
from physsm._errors import DataError, PhyssmError
from physsm.benchmark import physics_baselines
from tests.cli.command import physsm_here

pytestmark = pytest.mark.usefixtures("without_type_checks")  # a user has none of them


def make_table(series: int) -> pl.DataFrame:
    t = np.arange(60) * 0.1
    frames = [
        pl.DataFrame({"flight": [i] * 60, "t": t, "x": np.sin(t + i), "u": np.cos(t)})
        for i in range(series)
    ]
    return pl.concat(frames)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The physics is there for the unit; no baseline around its equations is needed."""
    folder = tmp_path_factory.mktemp("one_series")
    make_table(8).write_csv(folder / "many.csv")
    make_table(1).drop("flight").write_csv(folder / "one.csv")
    make_table(1).write_csv(folder / "named.csv")
    (folder / "my.phys").write_text("control u\nx' = ?a*x + ?b*u\nunit x = cm\n")
    options = "--physics my.phys --series flight --model arx --out run --json"
    with patch.object(physics_baselines, "PHYSICS_BASELINES", ()):
        result = physsm_here("fit", "many.csv", *options.split(), cwd=folder)
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)["rows"]
    assert all(row["channel_errors"]["x"]["unit"] == "cm" for row in rows)
    return folder


def test_it_is_evaluated_as_one_series(folder):
    found = [
        json.loads(physsm_here("evaluate", "run", name, "--json", cwd=folder).stdout)
        for name in ("one.csv", "named.csv")
    ]
    assert found[0]["rows"] == found[1]["rows"]


def test_it_is_forecast_as_one_series(folder):
    future = pl.DataFrame({"t": [6.0, 6.1], "u": [1.0, 1.0]})
    future.write_csv(folder / "future.csv")
    options = "--times future.csv --out out.csv"
    result = physsm_here("forecast", "run", "one.csv", *options.split(), cwd=folder)
    assert result.returncode == 0, result.stderr
    table = pl.read_csv(folder / "out.csv")
    assert "flight" not in table.columns
    assert table["t"].to_list() == [6.0, 6.1]


def test_it_is_forecast_in_python(folder):
    model = load(folder / "run")
    one, named = make_table(1).drop("flight"), make_table(1)
    future = {"times": np.array([6.0, 6.1]), "controls": np.ones((2, 1))}
    forecast = model.forecast(one, **future)
    assert forecast.ids == ("0",)
    np.testing.assert_array_equal(forecast.mean, model.forecast(named, **future).mean)
    assert model.forecast(make_table(2), **future).ids == ("0", "1")


def test_a_misspelt_series_column_is_named(folder):
    table = make_table(2).rename({"flight": "flights"})
    with pytest.raises(DataError, match=r"there is no column flight(.|\n)*did you mean flights"):
        load(folder / "run").check(table)


def test_several_series_without_the_column_are_refused(folder):
    with pytest.raises(PhyssmError, match="the time decreases"):
        load(folder / "run").check(make_table(2).drop("flight"))
