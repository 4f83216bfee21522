"""Wrong arguments of the Python interface give a sentence, never a bare TypeError."""

import json
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest

from physsm._values import Panel, Series
from physsm.models.line import Line

SAYS = {
    "coverage is a text": "the coverage must be a finite number",
    "coverage is a bool": "the coverage must be a finite number",
    "coverage is 2": "must be between 0 and 1",
    "horizon is 2.5": "the horizon must be a whole number from 1 to 1000000, not 2.5",
    "horizon is 0": "the horizon must be a whole number from 1 to 1000000, not 0",
    "horizon is a text": "the horizon must be a whole number from 1 to 1000000, not '3'",
    "times are texts": "the times must be an array of numbers",
    "times are ragged": "the times must be an array of numbers",
    "controls are a text": "the controls must be an array of numbers",
    "dates for a model of numbers": "the times are dates, and were numbers",
    "numbers for a model of dates": "the times are numbers, and were dates",
    "another time unit": "the time unit is h, and was d in the table of the fit",
    "seed is -1": "the seed must be a whole number from 0 to 2147483647, not -1",
    "seed is 1.5": "the seed must be a whole number from 0 to 2147483647, not 1.5",
    "seed is huge": "the seed must be a whole number from 0 to 2147483647",
    "horizon is huge": "the horizon must be a whole number from 1 to 1000000",
    "coverage is huge": "the coverage must be a finite number",
    "neither times nor horizon": "say which times to forecast (times) or how many rows (horizon)",
    "both times and horizon": "not both",
    "system is a name": "'pendulum' is no System",
}


@pytest.fixture(scope="module")
def raised():
    script = Path(__file__).with_name("wrong_calls.py")
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("call", SAYS)
def test_wrong_calls(raised, call):
    kind, message = raised[call]
    assert kind == "PhyssmError"
    assert SAYS[call] in message


def test_all_wrong_calls_are_looked_at(raised):
    assert set(raised) == set(SAYS)


@pytest.mark.parametrize("kind", [list, np.asarray, jnp.asarray, pd.Series, pl.Series])
def test_times_may_come_in_any_kind_of_array(kind):
    times, wanted = np.arange(60) * 0.1, [6.5, 7.0, 7.25]
    values = np.sin(times)[:, None]
    panel = Panel.from_series([Series("a", times, values, np.zeros((60, 0)))], ["x"])
    found = Line.create(None, {}).fit(panel, panel).forecast(panel, times=kind(wanted))
    np.testing.assert_allclose(found.times[0], wanted, rtol=1e-6)
