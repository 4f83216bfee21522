"""Simulated pendulums: a noisy angle at irregular times, unknown length, friction and actuator."""

from __future__ import annotations

import argparse

import numpy as np

import physsm
from physsm.datasets.pendulum import states

PHYSICS = """
    control torque
    observe theta
    theta' = omega
    omega' = -?g_over_l*sin(theta) - ?friction*omega + ?gain*torque
    unknown ?g_over_l, ?friction, ?gain constant
    ?g_over_l, ?friction >= 0
"""


def main(quick: bool) -> None:
    """Fit to a few pendulums, forecast others, compare unknowns with the truth."""
    data = states(series=(8, 3, 4), rows=60 if quick else 200, friction=0.15, seed=0)
    model = physsm.PhySSM(
        physsm.System.parse(PHYSICS),
        context=20 if quick else 60,
        horizon=20 if quick else 40,
        training={"steps": 5 if quick else 300, "validations": 1 if quick else 10},
    )
    fitted = model.fit(data.train, data.validation, seed=0)
    half = data.test.lengths // 2
    history, target = data.test.between(0, half), data.test.between(half, data.test.lengths)
    forecast = fitted.forecast(history, times=target.times, controls=target.controls, coverage=None)
    error = np.nanmean(np.abs(forecast.mean - target.values))
    print(f"mean error over {target.times.shape[1]} rows: {error:.3f} rad")
    truth = data.test_truth.coefficients
    found = fitted.unknowns(history)
    for name, value, true in zip(
        found.names, found.mean[0, -1], (truth.k[0], truth.c[0], truth.gain[0]), strict=True
    ):
        print(f"{name}: {value:.3f} (truth {true:.3f})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few training steps")
    main(parser.parse_args().quick)
