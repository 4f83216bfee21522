"""The unknowns of a physics text, learned, with standard errors, beside the truth.

A `constant` unknown has one value for all series; others have a value at each row of the history.
`found.mean` has the shape (series, rows, unknowns) for all of them.
"""

from __future__ import annotations

import argparse

from spring import DAMPING, STIFFNESS, fit, simulate


def main(quick: bool) -> None:
    """Stiffness and damping of the springs."""
    found = fit(quick).unknowns(simulate())
    for place, (name, truth) in enumerate({"stiffness": STIFFNESS, "damping": DAMPING}.items()):
        assert found.names[place] == name
        value, error = found.mean[0, 0, place], found.std[0, 0, place]
        print(f"{name}: {value:.3f} ± {error:.3f} (truth {truth})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few training steps")
    main(parser.parse_args().quick)
