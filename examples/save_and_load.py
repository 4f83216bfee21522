"""A model in a folder: it is loaded without its training data and without its settings.

`model.json` holds physics text, settings, scales and column names, `model.safetensors` the weights.
Nothing in them is executed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from spring import fit, simulate

import physsm


def main(quick: bool) -> None:
    """The loaded model gives the same forecast."""
    history, fitted = simulate(), fit(quick)
    controls = np.zeros((len(history), 5, 1))
    with TemporaryDirectory() as folder:
        fitted.save(folder)
        print(sorted(path.name for path in Path(folder).iterdir()))
        loaded = physsm.load(folder)
    before, after = (
        model.forecast(history, horizon=5, controls=controls) for model in (fitted, loaded)
    )
    np.testing.assert_array_equal(before.mean, after.mean)
    print("the loaded model gives the same forecast")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few training steps")
    main(parser.parse_args().quick)
