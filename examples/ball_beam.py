"""A ball on a tilted beam: its position over five seconds, from two seconds and the angle.

Needs the files of `daisy`, see `physsm data get ball_beam`. `--quick` leaves the network out.
"""

from __future__ import annotations

import argparse

from window_error import window_error

import physsm
from physsm.datasets.ball_beam import DATASET
from physsm.models import arx, repeat_last


def main(quick: bool) -> None:
    """Two baselines, and Phy-SSM with the equations of the ball."""
    split = DATASET.split("strict")
    models = {module.MODEL.name: module.MODEL.create(None, {}) for module in (repeat_last, arx)}
    if not quick:
        system = physsm.System.load(DATASET.system)
        sizes = split.sizes
        models["phy_ssm"] = physsm.PhySSM(system, context=sizes.context, horizon=sizes.horizon)
    for name, model in models.items():
        fitted = model.fit(split.train.panel, split.validation.panel)
        print(f"{name}: {window_error(fitted, split):.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the network")
    main(parser.parse_args().quick)
