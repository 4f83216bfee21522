"""The last fit of a model: to all rows, after the validation part has made its choices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from physsm._values import Panel
from physsm.data.parts import Parts
from physsm.models._network.observations import series_first
from physsm.models._network.training import TrainAgain
from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.fitted import FittedStateSpace
from physsm.models.phy_ssm.forecast import one_step, over_series
from physsm.models.phy_ssm.grey_box.fit import GreyBox, constants_std, with_arrays_of
from physsm.models.phy_ssm.grey_box.refit import refitted
from physsm.models.phy_ssm.grey_box.shooting import Fit
from physsm.models.phy_ssm.grey_box.smoothing import states_at_rows
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.standard_errors import standard_errors

RefitBox = Callable[[FittedStateSpace, Panel], tuple[Network, Fit] | None]


def is_trained_again(config: Config, parts: Parts) -> bool:
    """Whether a trained network is trained again on all rows: where the validation part is the end
    of the same series. Whole series that are set aside add less than a second training costs.
    """
    return config.refit and bool({*parts.train.panel.ids} & {*parts.validation.panel.ids})


def box_with_all_rows(
    box: GreyBox, parts: Parts, seed: int, fitted: FittedStateSpace, panel: Panel
) -> tuple[Network, Fit] | None:
    """The network and the fit of a grey box, fitted again to all rows."""
    validation = parts.validation.panel
    _, states = over_series(fitted.compiled, one_step, validation)
    known = [
        (parts.train.panel, box.fit.guess.states),
        (validation, series_first(states, validation)),
    ]
    length = length_with_all_rows(box.length, parts.train.panel, panel)
    return refitted(box, box.network, panel, states_at_rows(panel, known), length, seed)


def length_with_all_rows(length: int, train: Panel, panel: Panel) -> int:
    """The length of pieces of a panel with all rows, after that of its training part: series that
    were fitted as a whole are that again, with the rows that were set aside.
    """
    if length < int(train.lengths.max()):
        return length
    was_fitted = np.isin(panel.ids, train.ids)
    return max(length, int(panel.lengths[was_fitted].max(initial=0)))


def fitted_to_all_rows(
    with_box: RefitBox, fitted: FittedStateSpace, panel: Panel, _again: TrainAgain
) -> FittedStateSpace:
    """A model without a network, fitted again to all rows."""
    result = with_box(fitted, panel)
    if result is None:
        return fitted
    box, fit = result
    network = with_arrays_of(fitted.network, box)
    std = constants_std(network, fit)
    return replace(fitted, network=network, constants_std=std, before_refit=fitted)


def trained_on_all_rows(
    start: Network,
    with_box: RefitBox | None,
    fitted: FittedStateSpace,
    panel: Panel,
    again: TrainAgain,
) -> FittedStateSpace:
    """A model with a network that is trained again on all rows, from a grey box that is fitted
    again to them, if there is one.
    """
    box = None if with_box is None else with_box(fitted, panel)
    network = again(start if box is None else with_arrays_of(start, box[0]))
    if network is None:
        return fitted
    refit = replace(fitted, network=network, before_refit=fitted)
    if refit.system is None:
        return refit
    return replace(refit, constants_std=standard_errors(refit.compiled, panel))
