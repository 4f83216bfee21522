"""The demonstration: a driven pendulum with unknown friction, length and gain, measured with noise.

All series are simulated, so that the learned values can be compared with the true ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, TypeVar

from physsm.benchmark.evaluate import evaluate, fit_baselines
from physsm.benchmark.report_data import build_report_data
from physsm.data.window import Sizes
from physsm.datasets.pendulum import states
from physsm.models.phy_ssm.forecaster import PhySSM
from physsm.models.s5 import S5Forecaster
from physsm.physics.system import System
from physsm.training.loop import Progress

S = TypeVar("S")

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
SIZES = Sizes(context=60, horizon=120, stride=8)
SETTINGS: dict[str, Any] = {"context": SIZES.context, "horizon": SIZES.horizon, "stride": 8}
# All unknowns of the text are constant: Phy-SSM needs no network. The S5 beside it is small, and is
# trained for a shorter horizon, which it learns faster.
S5_SETTINGS: dict[str, Any] = {
    **SETTINGS,
    "horizon": 40,
    "encoder": {"width": 32, "states": 32, "depth": 1},
    "unit": {"width": 32, "states": 32, "depth": 1},
    "training": {"steps": 300, "validations": 5},
}


@dataclass(frozen=True)
class Demo:
    """Scores of all models, learned unknowns and report data of the demonstration."""

    scores: list[dict[str, Any]]
    unknowns: list[dict[str, Any]]
    report_data: dict[str, Any]
    seconds: float


class _StoppedError(Exception):
    """A training in the background was stopped because the foreground failed."""


@contextmanager
def _in_background(
    fit: Callable[[Callable[[Progress], None]], S], report: Callable[[Progress], None]
) -> Iterator[Future[S]]:
    """A fit in a thread of its own: most of its time is compiling, which needs one core. If the
    block fails, as by Ctrl-C, it is stopped at its next training step.
    """
    is_stopped = Event()

    def checked(progress: Progress) -> None:
        if is_stopped.is_set():
            raise _StoppedError
        report(progress)

    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(fit, checked)
        try:
            yield future
        except BaseException:
            is_stopped.set()
            raise


def run_demo(
    seed: int, folder: Path | None, watch: Callable[[str], Callable[[Progress], None]]
) -> Demo:
    """Simulate series, fit Phy-SSM and a plain S5, and compare both with baselines.

    `watch(label)` returns the receiver of the progress of the training. The fitted Phy-SSM is saved
    in `folder`.
    """
    began = time.perf_counter()
    data = states(series=(12, 4, 16), rows=200, mean_gap=0.08, friction=0.15, seed=seed)
    system = System.parse(PHYSICS)
    # Phy-SSM is fitted without a training loop: the progress is that of S5, beside it.
    with _in_background(
        lambda report: S5Forecaster(**S5_SETTINGS).fit(
            data.train, data.validation, seed=seed, report=report
        ),
        watch("phy_ssm and s5"),
    ) as background:
        fitted = PhySSM(system, **SETTINGS).fit(data.train, data.validation, seed=seed)
        plain_s5 = background.result()
    others = {"s5": plain_s5, **fit_baselines(data.train, data.validation, seed)}
    evaluation = evaluate(fitted, others, data.test, SIZES)
    pendulum = data.test_truth.coefficients
    truth = {
        "g_over_l": float(pendulum.k[0]),
        "friction": float(pendulum.c[0]),
        "gain": float(pendulum.gain[0]),
    }
    report_data = build_report_data(
        fitted,
        data.test,
        evaluation,
        title="Driven pendulum",
        settings={**fitted.describe()["config"], "seed": seed},
        truth=truth,
    )
    if folder is not None:
        fitted.save(folder)
    return Demo(
        scores=report_data["scores"],
        unknowns=report_data["physics"]["unknowns"],
        report_data=report_data,
        seconds=time.perf_counter() - began,
    )
