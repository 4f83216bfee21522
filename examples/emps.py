"""A positioning drive with friction: its position over two seconds, from one second and the force.

Needs the files of `physsm data get emps`. `--quick` leaves the network out.
"""

from __future__ import annotations

import argparse

from window_error import window_error

import physsm
from physsm.datasets.emps import DATASET
from physsm.models import arx, line


def main(quick: bool) -> None:
    """Two baselines, and Phy-SSM with the equations of the drive."""
    split = DATASET.split("strict", thin=50 if quick else 10)
    train, validation = split.train.panel, split.validation.panel
    models = {module.MODEL.name: module.MODEL.create(None, {}) for module in (line, arx)}
    if not quick:
        system = physsm.System.load(DATASET.system)  # mass, viscous and Coulomb friction
        sizes = split.sizes
        models["phy_ssm"] = physsm.PhySSM(system, context=sizes.context, horizon=sizes.horizon)
    for name, model in models.items():
        fitted = model.fit(train, validation)
        print(f"{name}: {window_error(fitted, split, windows=10 if quick else None):.4f}")
        if name == "phy_ssm":
            found = fitted.unknowns(validation)
            for place, unknown in enumerate(found.names):
                value, error = found.mean[0, 0, place], found.std[0, 0, place]
                print(f"  {unknown}: {value:.3g} ± {error:.2g}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the network, on few windows")
    main(parser.parse_args().quick)
