"""The last step of a grey box: its constants fitted again to all rows."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm._values import Panel
from physsm.models.phy_ssm.grey_box.candidates import GAIN, Fitting, physics_unit, with_constants
from physsm.models.phy_ssm.grey_box.filter_fit import with_start
from physsm.models.phy_ssm.grey_box.first_fit import first_fits
from physsm.models.phy_ssm.grey_box.fit import GreyBox
from physsm.models.phy_ssm.grey_box.shooting import Fit, Guess
from physsm.models.phy_ssm.grey_box.starts import hidden_states
from physsm.models.phy_ssm.network import Network


def refitted(
    box: GreyBox,
    network: Network,
    panel: Panel,
    states: Float[np.ndarray, "series rows n"],
    length: int,
    seed: int,
) -> tuple[Network, Fit] | None:
    """The network with constants and filter fitted to all rows of a panel, cut into pieces of a
    length; None if that diverges.

    It starts from where it is, with `states` (scaled) as first guesses; and, because more rows may
    tell minima apart, from new starts where states are hidden and the fit is not good.
    """
    scaled, unit = network.scales.table.scale(panel), physics_unit(network)
    shared = np.asarray(unit.constants, float)
    guess = Guess(shared, states, np.zeros((len(panel), len(unit.per_series))))
    fitting = Fitting(scaled, length, 1)
    fits = [fitting.fit(unit, guess)]
    if hidden_states(unit).any() and not box.is_good:
        fits += [fitting.fit_from(unit, one) for one in first_fits(unit, scaled, seed, number=1)]
    # Another minimum must be clearly better.
    costs = [fits[0].cost, *(fit.cost / GAIN**5 for fit in fits[1:])]
    best = int(np.argmin(np.where(np.isfinite(costs), costs, np.inf)))
    fit = fits[best]
    if not fit.is_finite:
        return None
    network = with_start(with_constants(network, fit.guess.shared), fit, scaled, keep_noises=True)
    return network, fit
