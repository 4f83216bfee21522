"""The filter of a grey box: the distribution of its start, and its noises.

States along the fitted trajectories give the start: a regression on the controls. Noises are chosen
by forecasts: the error over the asked horizon from the asked context, and the likelihood one step
ahead, which decides where the error does not; its weight is chosen by the validation error.
"""

from __future__ import annotations

from collections.abc import Callable

import equinox as eqx
import numpy as np
from jaxtyping import Float

from physsm._values import Panel
from physsm.data.parts import Parts
from physsm.data.window import Batch, Part, Windows, gather
from physsm.models._network.compiled import CompiledNetwork
from physsm.models._network.observations import FIRST_GAP
from physsm.models.phy_ssm.grey_box.shooting import Fit
from physsm.models.phy_ssm.kalman_inference import KalmanInference
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.objective import error_and_likelihood
from physsm.nn.layers import parameter

_WINDOWS = 16  # of each part
_LEAST_STD = 0.05  # of a state at the start, scaled
_RIDGE = 1e-6
_FACTORS = (10.0, 3.0)  # by which noises change in each pass
# Added to the logarithm of the square error for each noise that is a tenth or ten times what the
# errors of the simulation suggest: few windows show smaller gains by chance.
_PRICE = 0.03
_LEAST_LOG, _MOST_LOG = np.log(1e-5), np.log(3.0)


def with_start(network: Network, fit: Fit, scaled: Panel, *, keep_noises: bool = False) -> Network:
    """The network with the fitted distribution of first states, and with first noises unless it
    keeps its own.
    """
    valid = np.arange(scaled.times.shape[1]) < scaled.lengths[:, None]
    states = fit.guess.states[valid]
    table = network.scales.table
    u = (scaled.controls[valid] - table.control_shift) / table.control_scale
    inputs = np.concatenate([np.ones((len(u), 1)), u], axis=1)
    gram = inputs.T @ inputs + _RIDGE * len(u) * np.eye(inputs.shape[1])
    weights = np.linalg.solve(gram, inputs.T @ states)
    remaining = states - inputs @ weights
    covariance = remaining.T @ remaining / max(len(states), 1) + _LEAST_STD**2 * np.eye(
        states.shape[1]
    )
    # Another part of the series may lie further out than this one.
    root = 2 * np.linalg.cholesky(covariance)
    network = _with(
        network,
        {"first.mean": weights[0], "first.slope": weights[1:].T, "first.root": root},
    )
    return network if keep_noises else _with(network, _first_noises(network, fit, len(scaled)))


def _first_noises(network: Network, fit: Fit, series: int) -> dict[str, np.ndarray]:
    """Noises in the order of the errors of the simulation."""
    span, errors = network.scales.states.signal_time, np.maximum(fit.errors, 1e-3)
    terms = fit.guess.terms
    spread = np.maximum(terms.std(0), _LEAST_STD) if series > 1 else np.ones(terms.shape[1])
    return {
        "noises.log_error": np.log(errors),
        "noises.log_noise": np.full(network.unit.size, np.log(np.median(errors) / np.sqrt(span))),
        "noises.log_series_std": np.log(spread),
    }


def _with(network: Network, values: dict[str, np.ndarray]) -> Network:
    """The network with new arrays of its inference."""
    for path, value in values.items():
        part, field = path.split(".")

        def place(n: Network, part: str = part, field: str = field) -> object:
            return getattr(getattr(n.inference, part), field)

        network = eqx.tree_at(place, network, parameter(value))
    return network


def evaluation_batch(network: Network, parts: Parts) -> Batch:
    """Windows of the asked sizes, evenly spaced, half of each part."""
    batches = [_some(network, part, parts) for part in (parts.train, parts.validation)]
    joined = (np.concatenate(fields, axis=1) for fields in zip(*batches, strict=True))
    return Batch(*joined)


def _some(network: Network, part: Part, parts: Parts) -> Batch:
    windows: Windows = part.windows
    # In the order of the ids: that of the series in the table must not choose.
    order = np.lexsort((windows.start, np.array(part.panel.ids)[windows.series]))
    chosen = order[np.linspace(0, windows.number - 1, _WINDOWS).round().astype(int)]
    scaled, sizes = network.scales.table.scale(part.panel), parts.sizes
    return gather(scaled, windows[chosen], sizes.context, sizes.horizon, FIRST_GAP)


def scores(network: Network, batch: Batch, context: int) -> Float[np.ndarray, "batch 2"]:
    """Mean square error over the horizon, and negative log likelihood, of each window."""
    return np.asarray(
        CompiledNetwork(network, quick=True)(error_and_likelihood, batch, context=context)
    )


def with_chosen_noises(
    network: Network, batch: Batch, context: int, likelihood_weight: float
) -> Network:
    """The network with the noises that forecast best, by coordinate descent on their logarithms.
    The weight of the likelihood is relative to the logarithm of the error, and so is the price of a
    distance from the noises that the network has.
    """
    first = _noises(network)

    def loss(candidate: Network) -> float:
        error, likelihood = scores(candidate, batch, context).mean(0)
        shift = (_noises(candidate) - first) / np.log(10)
        total = np.log(error + 1e-12) + likelihood_weight * likelihood + _PRICE * (shift**2).sum()
        return float(total) if np.isfinite(total) else np.inf

    best = loss(network)
    for factor in _FACTORS:
        for shift in _directions(network):
            for sign in (1.0, -1.0):
                step = sign * np.log(factor)
                while True:
                    candidate = shift(network, step)
                    now = loss(candidate) if candidate is not None else np.inf
                    if not now < best - 1e-3:
                        break
                    network, best = candidate, now  # type: ignore[assignment]
    return network


def _noises(network: Network) -> Float[np.ndarray, " noises"]:
    """Logarithms of the noises that are chosen."""
    assert isinstance(network.inference, KalmanInference)
    noises = network.inference.noises
    return np.concatenate(
        [np.asarray(noises.log_noise, float), np.asarray(noises.log_error, float)]
    )


Shift = Callable[[Network, float], Network | None]


def _directions(network: Network) -> list[Shift]:
    """Changes of noises: all of the states, each of the channels, each of the states."""
    inference = network.inference
    assert isinstance(inference, KalmanInference)
    states, channels = len(inference.noises.log_noise), inference.scales.states.grounded_channels
    everywhere = np.ones(states, bool)
    directions = [_shift("noises.log_noise", everywhere)]
    for channel in channels:
        only = np.arange(len(inference.noises.log_error)) == channel
        directions.append(_shift("noises.log_error", only))
    if states > 1:
        directions += [_shift("noises.log_noise", np.arange(states) == i) for i in range(states)]
    return directions


def _shift(path: str, which: np.ndarray) -> Shift:
    def shifted(network: Network, step: float) -> Network | None:
        part, field = path.split(".")
        now = np.asarray(getattr(getattr(network.inference, part), field), float)
        after = now + step * which
        if (after[which] < _LEAST_LOG).any() or (after[which] > _MOST_LOG).any():
            return None
        return _with(network, {path: after})

    return shifted
