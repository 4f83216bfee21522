"""The demonstration: a pendulum whose friction and length are unknown, driven and badly measured.

Everything is simulated here, so that what the model recovers can be held against the truth.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from physsm.benchmark.evaluate import evaluate, fit_classical
from physsm.benchmark.story import make_story, plain
from physsm.data.window import Sizes
from physsm.datasets.pendulum import states
from physsm.models.phy_ssm.forecaster import PhySSM
from physsm.models.s5 import S5Forecaster
from physsm.physics.system import System
from physsm.training.loop import Progress

PHYSICS = """\
# one pendulum, recorded many times: its friction, length and actuator are not known
control torque
observe theta
theta' = omega
omega' = -?g_over_l*sin(theta) - ?friction*omega + ?gain*torque
unknown ?g_over_l, ?friction, ?gain constant
?g_over_l >= 0
?friction >= 0
unit theta = rad, omega = rad/s, torque = N m
"""
# Trained to look 40 rows ahead, and asked for 120: this is where knowing the equations pays.
SIZES = Sizes(context=80, horizon=120, stride=8)
SETTINGS: dict[str, Any] = {
    "context": 60,
    "horizon": 40,
    "stride": 8,
    "training": {"steps": 300, "validations": 10},
}


@dataclass(frozen=True)
class Demo:
    """What the demonstration found."""

    rows: list[dict[str, Any]]
    unknowns: list[dict[str, Any]]
    story: dict[str, Any]
    seconds: float


def run_demo(
    seed: int, folder: Path | None, watch: Callable[[str], Callable[[Progress], None]]
) -> Demo:
    """Simulate, fit Phy-SSM and a plain S5 of equal size, and compare with classical rows.

    `watch(name)` gives the progress report of each fit. The fitted Phy-SSM is saved in `folder`.
    """
    began = time.perf_counter()
    data = states(series=(12, 4, 16), rows=200, mean_gap=0.08, friction=0.15, seed=seed)
    system = System.parse(PHYSICS)
    fitted = PhySSM(system, **SETTINGS).fit(
        data.train, data.validation, seed=seed, report=watch("phy_ssm")
    )
    plain_s5 = S5Forecaster(**SETTINGS).fit(
        data.train, data.validation, seed=seed, report=watch("s5")
    )
    others = {"s5": plain_s5, **fit_classical(data.train, data.validation, seed)}
    rows = plain(evaluate(fitted, others, data.test, SIZES))
    pendulum = data.test_truth.coefficients
    truth = {
        "g_over_l": float(pendulum.k[0]),
        "friction": float(pendulum.c[0]),
        "gain": float(pendulum.gain[0]),
    }
    settings = {**fitted.describe()["config"], "seed": seed}
    story = make_story("Driven pendulum", fitted, others, data.test, SIZES, rows, settings, truth)
    if folder is not None:
        fitted.save(folder)
    return Demo(rows, story["physics"]["unknowns"], story, time.perf_counter() - began)
