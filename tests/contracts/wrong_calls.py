"""Calls with wrong arguments, each with what was raised; run as a program of its own, because the
tests check types at every call, which a user's Python does not.
"""

# pyright: reportArgumentType=false
import json
import sys

import numpy as np
import pandas as pd

from physsm import PhySSM, System
from physsm._errors import PhyssmError
from physsm._values import Panel, Series
from physsm.data.table import to_panel
from physsm.models.line import Line


def one_series(rows: int = 60) -> Panel:
    times = np.arange(rows) * 0.1
    values = np.sin(times)[:, None]
    return Panel.from_series([Series("a", times, values, np.zeros((rows, 0)))], ["x"])


def dated(unit: str = "s") -> Panel:
    days = pd.date_range("2024-01-01", periods=60)
    return to_panel(pd.DataFrame({"time": days, "x": np.arange(60.0)}), time_unit=unit)


PANEL = one_series()
LINE = Line.create(None, {}).fit(PANEL, PANEL)
BY_DAYS = Line.create(None, {}).fit(dated("d"), dated("d"))
PHYSICS = PhySSM(System.parse("x' = -?*x\nobserve x"))
CALLS = {
    "coverage is a text": lambda: LINE.forecast(PANEL, horizon=3, coverage="x"),
    "coverage is a bool": lambda: LINE.forecast(PANEL, horizon=3, coverage=True),
    "coverage is 2": lambda: LINE.forecast(PANEL, horizon=3, coverage=2),
    "horizon is 2.5": lambda: LINE.forecast(PANEL, horizon=2.5),
    "horizon is 0": lambda: LINE.forecast(PANEL, horizon=0),
    "horizon is a text": lambda: LINE.forecast(PANEL, horizon="3"),
    "times are texts": lambda: LINE.forecast(PANEL, times=["2024-01-01"]),
    "times are ragged": lambda: LINE.forecast(PANEL, times=[[7.0], [8.0, 9.0]]),
    "controls are a text": lambda: LINE.forecast(PANEL, times=[7.0], controls="u"),
    "dates for a model of numbers": lambda: LINE.forecast(dated(), horizon=2),
    "numbers for a model of dates": lambda: BY_DAYS.forecast(PANEL, horizon=2),
    "another time unit": lambda: BY_DAYS.forecast(dated("h"), horizon=2),
    "seed is -1": lambda: PHYSICS.fit(PANEL, seed=-1),
    "seed is 1.5": lambda: Line.create(None, {}).fit(PANEL, seed=1.5),
    "seed is huge": lambda: PHYSICS.fit(PANEL, seed=2**70),
    "horizon is huge": lambda: LINE.forecast(PANEL, horizon=10**13),
    "coverage is huge": lambda: LINE.forecast(PANEL, horizon=3, coverage=10**400),
    "neither times nor horizon": lambda: LINE.forecast(PANEL),
    "both times and horizon": lambda: LINE.forecast(PANEL, horizon=3, times=[7.0]),
    "system is a name": lambda: PhySSM("pendulum"),
}

found = {}
for name, call in CALLS.items():
    try:
        call()
        found[name] = ["nothing", ""]
    except Exception as error:
        is_ours = isinstance(error, PhyssmError)
        found[name] = ["PhyssmError" if is_ours else type(error).__name__, str(error)]
sys.stdout.write(json.dumps(found))
