"""Pelts of lynx and hare, 1900 to 1920: one series of 21 years, two years ahead of three.

One test window proves nothing: this is an example of a very small table. Needs the file of
`physsm data get lynx_hare`. `--quick` leaves the network out.
"""

from __future__ import annotations

import argparse

from window_error import window_error

import physsm
from physsm.datasets.lynx_hare import DATASET
from physsm.models import least_squares, repeat_last
from physsm.models._base import AbstractForecaster


def main(quick: bool) -> None:
    """The last years repeated, and the equations of Lotka and Volterra."""
    split = DATASET.split("strict")
    train, validation = split.train.panel, split.validation.panel
    system = physsm.System.load(DATASET.system)
    models: dict[str, AbstractForecaster] = {"repeat_last": repeat_last.MODEL.create(None, {})}
    if not quick:
        models["least_squares"] = least_squares.MODEL.create(system, {"rows": [3, 5]})
        sizes = split.sizes
        models["phy_ssm"] = physsm.PhySSM(system, context=sizes.context, horizon=sizes.horizon)
    for name, model in models.items():
        print(f"{name}: {window_error(model.fit(train, validation), split):.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the network, on few windows")
    main(parser.parse_args().quick)
