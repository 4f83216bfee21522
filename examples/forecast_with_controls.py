"""A decision: two plans for a control, each forecast before one of them is carried out."""

from __future__ import annotations

import argparse

import numpy as np
from spring import fit, simulate


def main(quick: bool) -> None:
    """Compare two forces: which one leaves the spring nearer to its rest."""
    history = simulate().select([0])
    fitted = fit(quick)
    times = history.times[0, -1] + 0.2 * np.arange(1, 26)
    plans = {"no force": np.zeros(25), "push for two seconds": np.where(np.arange(25) < 10, 1, 0)}
    for name, force in plans.items():
        forecast = fitted.forecast(history, times=times, controls=force[:, None], coverage=0.9)
        largest = np.abs(forecast.mean[0, :, 0]).max()
        end, low, high = (
            part[0, -1, 0] for part in (forecast.mean, forecast.lower, forecast.upper)
        )
        print(f"{name}: at most {largest:.2f} from rest, then {end:.2f} ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few training steps")
    main(parser.parse_args().quick)
