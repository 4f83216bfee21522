"""Flights of a quadrotor: a linear recurrence, Phy-SSM, and its linear bypass before any training.

Nearly all of the gain over the recurrence is the bypass, which takes from the equations that
rotors pull with the square of their speed. Needs the files of `physsm data get drone`. `--quick`
leaves Phy-SSM out.
"""

from __future__ import annotations

import argparse

from window_error import window_error

import physsm
from physsm.datasets.drone import DATASET
from physsm.models import arx, repeat_last


def main(quick: bool) -> None:
    """200 rows (0.2 s) after 800, on flights that no model has seen."""
    split = DATASET.split("strict")
    train, validation = split.train.panel, split.validation.panel
    recurrence = {"lags": [4]} if quick else {"lags": [50], "spacing": 2, "horizon": 200}
    models = {
        "repeat_last": repeat_last.MODEL.create(None, {}),
        "arx": arx.MODEL.create(None, recurrence),
    }
    if not quick:
        system = physsm.System.load("quadrotor_rotors")
        settings = {"context": 400, "horizon": 200, "hide": 0.0, "curriculum": 0.0}
        slow = {"learning_rate": 1e-3, "weight_decay": 1.0}
        for name, steps in {"linear bypass alone": 1, "phy_ssm": 600}.items():
            training = {"steps": steps, "batch_size": 24, "optimiser": slow}
            models[name] = physsm.PhySSM(system, **settings, training=training)
    for name, model in models.items():
        error = window_error(model.fit(train, validation), split, windows=20 if quick else None)
        print(f"{name}: {error:.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the network, on few windows")
    main(parser.parse_args().quick)
