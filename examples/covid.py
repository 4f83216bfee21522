"""Epidemics in 43 countries: baselines, the SIR equations by least squares, and Phy-SSM.

Here the baselines are hard to beat: see docs/benchmarks.md. Needs the files of
`physsm data get covid`. `--quick` leaves the network out.
"""

from __future__ import annotations

import argparse

from window_error import window_error

import physsm
from physsm.datasets.covid import DATASET
from physsm.models import damped, least_squares, line


def main(quick: bool) -> None:
    """80 reported days after 160, in countries that no model has seen."""
    split = DATASET.split("world")
    train, validation = split.train.panel, split.validation.panel
    system = physsm.System.load(DATASET.system)
    models = {module.MODEL.name: module.MODEL.create(None, {}) for module in (line, damped)}
    if not quick:
        models["least_squares"] = least_squares.MODEL.create(system, {})
        models["phy_ssm"] = physsm.PhySSM(system, context=160, horizon=80)
    for name, model in models.items():
        error = window_error(model.fit(train, validation), split, windows=10 if quick else None)
        print(f"{name}: {error:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the network, on few windows")
    main(parser.parse_args().quick)
