"""Vehicles in traffic: six seconds of a track after two, with the baselines for tracks.

Needs the files of `physsm data get nuscenes`, which are licensed for non-commercial use.
"""

from __future__ import annotations

import argparse

import numpy as np

from physsm.data.window import cut_windows
from physsm.datasets.nuscenes import DATASET
from physsm.metrics import ade, fde
from physsm.models import arx, constant_turn_rate, constant_velocity

TRACK = {"positions": ["p", "y"], "heading": "psi", "velocities": ["v_p", "v_y"]}


def main(quick: bool) -> None:
    """Mean and final distance between forecast and measured positions, in m."""
    split = DATASET.split("strict", limit=100 if quick else 5000)
    train, validation = split.train.panel, split.validation.panel
    history, query, target = cut_windows(split.test.panel, split.test.windows)
    models = {
        "constant_velocity": constant_velocity.MODEL.create(None, {"tracks": [TRACK]}),
        "constant_turn_rate": constant_turn_rate.MODEL.create(None, {"tracks": [TRACK]}),
        "arx": arx.MODEL.create(None, {}),
    }
    places = [split.test.panel.channels.index(name) for name in TRACK["positions"]]
    for name, model in models.items():
        forecast = model.fit(train, validation).forecast(history, times=query.times, coverage=None)
        measured, predicted = target.values[..., places], forecast.mean[..., places]
        measured = np.asarray(measured, float)
        far, last = ade(measured, predicted), fde(measured, predicted)
        print(f"{name}: ADE {far:.2f} m, FDE {last:.2f} m")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few windows")
    main(parser.parse_args().quick)
