"""The demonstration: a driven pendulum with unknown friction, length and gain, measured with noise.

All series are simulated, so that the learned values can be compared with the true ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from physsm._json import plain
from physsm.benchmark.evaluate import evaluate, fit_baselines
from physsm.benchmark.report_data import build_report_data
from physsm.data.window import Sizes
from physsm.datasets.pendulum import states
from physsm.models.phy_ssm.forecaster import PhySSM
from physsm.models.s5 import S5Forecaster
from physsm.physics.system import System
from physsm.training.loop import Progress

PHYSICS = """\
# one pendulum, measured in many series: its friction, length and actuator gain are unknown
control torque
observe theta
theta' = omega
omega' = -?g_over_l*sin(theta) - ?friction*omega + ?gain*torque
unknown ?g_over_l, ?friction, ?gain constant
?g_over_l >= 0
?friction >= 0
unit theta = rad, omega = rad/s, torque = N m
"""
# Trained for a horizon of 40 time steps and scored at 120, where known equations help most.
SIZES = Sizes(context=80, horizon=120, stride=8)
SETTINGS: dict[str, Any] = {
    "context": 60,
    "horizon": 40,
    "stride": 8,
    "training": {"steps": 300, "validations": 10},
}


@dataclass(frozen=True)
class Demo:
    """Scores of all models, learned unknowns and report data of the demonstration."""

    scores: list[dict[str, Any]]
    unknowns: list[dict[str, Any]]
    report_data: dict[str, Any]
    seconds: float


def run_demo(
    seed: int, folder: Path | None, watch: Callable[[str], Callable[[Progress], None]]
) -> Demo:
    """Simulate series, fit Phy-SSM and a plain S5 of equal size, and compare both with baselines.

    `watch(name)` returns the receiver of the progress of each fit. The fitted Phy-SSM is saved in
    `folder`.
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
    others = {"s5": plain_s5, **fit_baselines(data.train, data.validation, seed)}
    scores = plain(evaluate(fitted, others, data.test, SIZES))
    pendulum = data.test_truth.coefficients
    truth = {
        "g_over_l": float(pendulum.k[0]),
        "friction": float(pendulum.c[0]),
        "gain": float(pendulum.gain[0]),
    }
    report_data = build_report_data(
        fitted,
        others,
        data.test,
        title="Driven pendulum",
        sizes=SIZES,
        scores=scores,
        settings={**fitted.describe()["config"], "seed": seed},
        truth=truth,
    )
    if folder is not None:
        fitted.save(folder)
    return Demo(
        scores=scores,
        unknowns=report_data["physics"]["unknowns"],
        report_data=report_data,
        seconds=time.perf_counter() - began,
    )
