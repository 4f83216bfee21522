"""Oscillators for the tests of the grey box: panels, units and pieces."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from physsm._values import Panel, Series
from physsm.models.phy_ssm.grey_box.candidates import Candidate, Judge
from physsm.models.phy_ssm.grey_box.shooting import Fit, Guess
from physsm.models.phy_ssm.network import Network
from tests.models.phy_ssm.make import make_network

STIFFNESS, DAMPING = 4.0, 0.3
SETTINGS: dict[str, Any] = {"unknown_network": "none", "correct": True, "substeps": 2}
TEXT = """x' = v
v' = -?k*x - ?c*v
unknown ?k, ?c constant
?k >= 0
?c >= 0
observe x
"""


def oscillators(
    seed: int, lengths: Sequence[int], error: float = 0.0, gap: float = 0.1, missing: float = 0.0
) -> tuple[Panel, np.ndarray]:
    """Positions at irregular times; and positions and velocities without errors, as
    (series, rows, 2).
    """
    rng = np.random.default_rng(seed)
    series, states = [], np.zeros((len(lengths), max(lengths), 2))
    for i, rows in enumerate(lengths):
        times = np.cumsum(rng.uniform(0.5, 1.5, rows) * gap)
        start = rng.uniform(0.5, 1.5, 2) * rng.choice([-1, 1], 2)
        states[i, :rows] = true_states(times, start)
        x = states[i, :rows, :1] + error * rng.standard_normal((rows, 1))
        x[rng.random((rows, 1)) < missing] = np.nan
        series.append(Series(str(i), times, x, np.zeros((rows, 0))))
    return Panel.from_series(series, ["x"]), states


def true_states(times: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Position and velocity at increasing times, from those at the first."""
    return solve_ivp(
        lambda t, y: [y[1], -STIFFNESS * y[0] - DAMPING * y[1]],
        (times[0], times[-1]),
        start,
        t_eval=times,
        rtol=1e-10,
        atol=1e-12,
    ).y.T


def make_unit(panel: Panel, text: str = TEXT, **changes: Any) -> Any:
    """The unit of a grey box, with steps of second order."""
    return make_network(text, panel, **{**SETTINGS, **changes}).unit


class FairJudge(Judge):
    """All candidates are equal."""

    def __init__(self):
        pass

    def candidate(self, network: Network, fit: Fit, scaled: Panel) -> Candidate:
        return Candidate(network, fit, 1.0)


def make_fit(distance: float) -> Fit:
    """A fit whose error and cost are the distance of its constants from the right ones."""
    guess = Guess(np.full(2, distance), np.zeros((1, 30, 2)), np.zeros((1, 0)))
    return Fit(guess=guess, cost=distance, errors=np.array([distance]), covariance=np.eye(2))
