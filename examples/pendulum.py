"""Simulated pendulums: a noisy angle at irregular times, unknown length, friction and actuator.

Nothing to fetch. `--quick` leaves the network out.
"""

from __future__ import annotations

import argparse

import numpy as np

import physsm
from physsm.datasets.pendulum import states
from physsm.models import arx, damped

PHYSICS = """
    control torque
    observe theta
    theta' = omega
    omega' = -?g_over_l*sin(theta) - ?friction*omega + ?gain*torque
    unknown ?g_over_l, ?friction, ?gain constant
    ?g_over_l, ?friction >= 0
"""


def main(quick: bool) -> None:
    """Fit to a few pendulums, forecast the second half of others."""
    data = states(series=(8, 3, 4), rows=60 if quick else 200, friction=0.15, seed=0)
    half = data.test.lengths // 2
    history, target = data.test.between(0, half), data.test.between(half, data.test.lengths)
    models = {module.MODEL.name: module.MODEL.create(None, {}) for module in (damped, arx)}
    if not quick:
        settings = {"context": 60, "horizon": 40, "training": {"steps": 300}}
        models["phy_ssm"] = physsm.PhySSM(physsm.System.parse(PHYSICS), **settings)
    for name, model in models.items():
        fitted = model.fit(data.train, data.validation)
        forecast = fitted.forecast(history, times=target.times, controls=target.controls)
        error = np.nanmean(np.abs(forecast.mean - target.values))
        print(f"{name}: mean error over {target.times.shape[1]} rows {error:.3f} rad")
        if name == "phy_ssm":
            truth = data.test_truth.coefficients
            found = fitted.unknowns(history)
            true_values = truth.k[0], truth.c[0], truth.gain[0]
            for unknown, value, true in zip(
                found.names, found.mean[0, -1], true_values, strict=True
            ):
                print(f"  {unknown}: {value:.3f} (truth {true:.3f})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the network")
    main(parser.parse_args().quick)
