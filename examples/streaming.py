"""A stream: measurements arrive one at a time, and a forecast can be asked for at any time.

An update takes as long after a million measurements as after the first.
"""

from __future__ import annotations

import argparse

import numpy as np
from spring import fit, simulate


def main(quick: bool) -> None:
    """Follow one spring and forecast its next second after every 20th measurement."""
    fitted = fit(quick)
    series = simulate().select([0])[0]
    stream = fitted.start()
    for row, (t, x, u) in enumerate(zip(series.times, series.values, series.controls, strict=True)):
        stream = fitted.update(stream, t=float(t), x=x, u=u)  # NaN in x: not measured
        if row % 20 == 19:
            ahead = float(t) + np.array([0.5, 1.0])
            forecast = fitted.forecast_stream(stream, times=ahead, controls=np.tile(u, (2, 1)))
            values = ", ".join(f"{value:.2f}" for value in forecast.mean[0, :, 0])
            print(f"t = {t:.1f}: in 0.5 and 1 s at {values}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few training steps")
    main(parser.parse_args().quick)
