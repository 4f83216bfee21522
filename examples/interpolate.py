"""Missing values: a series at any time inside it, given all measurements before and after."""

from __future__ import annotations

import argparse

import numpy as np
from spring import fit, simulate


def main(quick: bool) -> None:
    """A spring of which four seconds were lost."""
    whole = simulate().select([0])
    lost = (whole.times[0] > 6) & (whole.times[0] < 10)
    whole.values[0, lost] = np.nan
    filled = fit(quick).interpolate(whole, times=np.linspace(5.0, 11.0, 7), coverage=0.9)
    print(filled.to_frame())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few training steps")
    main(parser.parse_args().quick)
