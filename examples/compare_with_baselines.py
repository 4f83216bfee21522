"""Is a model worth its training? Score it and some baselines on the same new series."""

from __future__ import annotations

import argparse

import numpy as np
from spring import fit, simulate

from physsm.data.window import cut_windows, windows
from physsm.models import arx, damped, line, mean, repeat_last


def main(quick: bool) -> None:
    """Errors over 20 rows after 40, on springs that no model has seen."""
    train, test = simulate(), simulate(series=6, seed=1)
    history, query, target = cut_windows(test, windows(test, context=40, horizon=20, stride=10))
    models = {"phy_ssm": fit(quick)}
    for module in (repeat_last, mean, line, damped, arx):
        models[module.MODEL.name] = module.MODEL.create(None, {}).fit(train)
    for name, fitted in models.items():
        forecast = fitted.forecast(history, times=query.times, controls=query.controls)
        error = np.nanmean(np.abs(forecast.mean - target.values))
        inside = (forecast.lower <= target.values) & (target.values <= forecast.upper)
        share = inside[~np.isnan(target.values)].mean()
        print(f"{name:12} MAE {error:.3f}, {share:.0%} inside the 90 % interval")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few training steps")
    main(parser.parse_args().quick)
