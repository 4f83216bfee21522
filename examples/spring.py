"""A table of springs and a model fitted to it, for the examples of single uses.

Four springs swing under a known force. Their stiffness and damping are unknown. Each was measured
at times of its own, with noise, and a tenth of the measurements is missing.
"""

from __future__ import annotations

import argparse
from functools import cache

import numpy as np
from small_network import SMALL

import physsm

PHYSICS = """
    control force
    x' = v
    v' = -?stiffness*x - ?damping*v + force
    unknown ?stiffness, ?damping constant
    ?stiffness, ?damping >= 0
    observe x
"""
STIFFNESS, DAMPING = 4.0, 0.3  # the truth, which the model is not given


def force_at(times: np.ndarray) -> np.ndarray:
    """The force on the springs, known at all times."""
    return np.sign(np.sin(0.7 * times))


def simulate(series: int = 4, rows: int = 80, seed: int = 0) -> physsm.Panel:
    """Springs released at different points; 100 small steps to each row."""
    rng = np.random.default_rng(seed)
    times, values, forces = [], [], []
    for start in np.linspace(-1.0, 1.0, series):
        t = np.cumsum(rng.uniform(0.1, 0.3, rows))
        x, v, measured = start, 0.0, []
        for before, after in zip([0.0, *t], [*t, t[-1]], strict=True):
            measured.append(x)
            step, force = (after - before) / 100, float(force_at(np.array(before)))
            for _ in range(100):
                v += step * (force - STIFFNESS * x - DAMPING * v)
                x += step * v
        noisy = np.array(measured[1:]) + 0.02 * rng.standard_normal(rows)
        times.append(t)
        values.append(np.where(rng.random(rows) < 0.1, np.nan, noisy)[:, None])
        forces.append(force_at(t)[:, None])
    return physsm.panel_from_arrays(
        times, values, controls=forces, channels=["x"], control_names=["force"]
    )


@cache
def fit(quick: bool = False):
    """A fitted Phy-SSM; a small one after a few steps, if it is to be quick."""
    settings = SMALL if quick else {"context": 40, "horizon": 20, "training": {"steps": 300}}
    return physsm.PhySSM(physsm.System.parse(PHYSICS), **settings).fit(simulate(), seed=0)


def main(quick: bool) -> None:
    """Fit, and print what was learned."""
    print(fit(quick))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few training steps")
    main(parser.parse_args().quick)
