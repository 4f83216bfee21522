"""The fit of a grey box: start → shooting → filter, each stage from where the last one ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from physsm._values import Panel
from physsm.data.parts import Parts
from physsm.models._network.fitted import Stage
from physsm.models._network.state_scales import scales_of_states
from physsm.models._network.unknowns import from_physical_units, in_physical_units, of_kind
from physsm.models.phy_ssm.build import build_network
from physsm.models.phy_ssm.bypass_inputs import PhySSMScales
from physsm.models.phy_ssm.config import Config, Hold
from physsm.models.phy_ssm.grey_box.filter_fit import (
    evaluation_batch,
    scores,
    with_chosen_noises,
    with_start,
)
from physsm.models.phy_ssm.grey_box.first_fit import first_fits, has_hidden_states
from physsm.models.phy_ssm.grey_box.pieces import number_of_pieces
from physsm.models.phy_ssm.grey_box.shooting import Fit, Guess, shoot
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.unit import PhysicsUnit, hold_weights
from physsm.nn.layers import parameter
from physsm.physics.system import System

_ITERATIONS = 40
_GAIN = 0.99  # share of the validation error that makes a difference
_ATTEMPTS, _GOOD_ERROR = 3, 0.5  # with a larger error, scaled, other starts are tried
_LONGER = 8  # times the asked length, of longer pieces


@dataclass(frozen=True, eq=False, kw_only=True)
class GreyBox:
    """A fitted grey box: its network, the guess at which shooting ended, and its stages."""

    network: Network
    fit: Fit
    stages: tuple[Stage, ...]
    length: int  # rows of a piece


def fit_grey_box(
    system: System, scales: PhySSMScales, config: Config, parts: Parts, seed: int
) -> GreyBox:
    """Constants and initial states from the training part, noises of the filter from windows of
    both parts; the validation part chooses between candidates and the hold of the controls.
    """
    config = config.model_copy(update={"unknown_network": "none"})
    network = build_network(system, scales, config, seed)
    scaled = scales.table.scale(parts.train.panel)
    guesses = first_fits(_unit(network), scaled, seed)
    network, guesses = _with_scales_of_hidden(network, guesses, scaled)
    judge, asked = Judge(network, parts), parts.sizes.context + parts.sizes.horizon
    fitting = Fitting(scaled, asked, _all_pieces(parts, asked))
    rough = fitting.fit(_unit(network), guesses[0], iterations=0)
    start = best = judge.candidate(network, rough, scaled)
    for attempt in range(1, _ATTEMPTS + 1):
        fits = [fitting.fit(_unit(network), guess) for guess in guesses]
        candidates = [judge.candidate(network, fit, scaled) for fit in fits]
        best = min([best, *candidates], key=lambda candidate: candidate.error)
        if best.error < _GOOD_ERROR or not has_hidden_states(_unit(network)):
            break
        guesses = first_fits(_unit(network), scaled, seed, attempt)
    for length in _longer(asked, int(scaled.lengths.max())):
        longer = Fitting(scaled, length, _all_pieces(parts, length))
        candidate = judge.candidate(network, longer.fit(_unit(network), best.fit.guess), scaled)
        # Of nearly equal ones the fit to longer pieces: forecasts may be asked for more later.
        if candidate.error < best.error / _GAIN:
            best, fitting = candidate, longer
    best, hold = _with_best_hold(best, judge, fitting)
    chosen = judge.with_noises(best)
    if not chosen.error <= start.error:
        chosen, best, hold = judge.with_noises(start), start, config.control_hold
    stages = (
        Stage(name="start", error=_finite(start.error), kept=True),
        Stage(name="grey box", error=_finite(chosen.error), kept=best is not start),
    )
    return GreyBox(
        network=_with_hold(chosen.network, hold), fit=best.fit, stages=stages, length=fitting.length
    )


def _finite(error: float) -> float | None:
    return error if np.isfinite(error) else None


def _all_pieces(parts: Parts, length: int) -> int:
    """Number of pieces of the later fit to all rows: with as many, one program serves both."""
    panels = parts.train.panel, parts.validation.panel
    return sum(number_of_pieces(panel, length) for panel in panels)


class Fitting(NamedTuple):
    """Pieces that constants are fitted to: their series, their length and their least number."""

    scaled: Panel
    length: int
    least_pieces: int

    def fit(self, unit: PhysicsUnit, guess: Guess, iterations: int = _ITERATIONS) -> Fit:
        """The fit from a guess."""
        return shoot(
            unit,
            self.scaled,
            [guess],
            length=self.length,
            iterations=iterations,
            least_pieces=self.least_pieces,
        )


class Candidate(NamedTuple):
    """A network with the constants of a fit, and its validation error."""

    network: Network
    fit: Fit
    error: float


class Judge:
    """Validation windows that choose between candidates."""

    def __init__(self, network: Network, parts: Parts):
        self.batch, self.context = evaluation_batch(network, parts), parts.sizes.context

    def error(self, network: Network) -> float:
        """Root mean square error over the horizon on the validation windows."""
        error = scores(network, self.batch, self.context)[:, 0]
        mean = float(np.sqrt(error[len(error) // 2 :].mean()))
        return mean if np.isfinite(mean) else np.inf

    def candidate(self, network: Network, fit: Fit, scaled: Panel) -> Candidate:
        """A fit with a filter of its own, whose noises are in the order of its errors."""
        network = with_start(_with_constants(network, fit.guess.shared), fit, scaled)
        return Candidate(network, fit, self.error(network))

    def with_noises(self, candidate: Candidate) -> Candidate:
        """The candidate with noises chosen by forecasts, if they lower its validation error."""
        network = with_chosen_noises(candidate.network, self.batch, self.context)
        error = self.error(network)
        return candidate if error > candidate.error else Candidate(network, candidate.fit, error)


def _longer(asked: int, longest: int) -> list[int]:
    """The length of longer pieces to try, where series are much longer than asked."""
    return [] if longest < 2 * asked else [min(longest, _LONGER * asked)]


def refitted(
    box: GreyBox,
    network: Network,
    panel: Panel,
    states: Float[np.ndarray, "series rows n"],
    seed: int,
) -> tuple[Network, Fit] | None:
    """The network with constants and filter fitted to all rows of a panel; None if that diverges.

    It starts from where it is, with `states` (scaled) as first guesses; and, because more rows may
    tell minima apart, from new starts where states are hidden.
    """
    scaled, unit = network.scales.table.scale(panel), _unit(network)
    shared = np.asarray(unit.constants, float)
    guesses = [Guess(shared, states, np.zeros((len(panel), len(unit.per_series))))]
    if has_hidden_states(unit):
        guesses += first_fits(unit, scaled, seed)
    fitting = Fitting(scaled, box.length, 1)
    fits = [fitting.fit(unit, guess) for guess in guesses]
    # Another minimum must be clearly better.
    costs = [fits[0].cost, *(fit.cost / _GAIN**5 for fit in fits[1:])]
    best = int(np.argmin(np.where(np.isfinite(costs), costs, np.inf)))
    fit = fits[best]
    if not np.isfinite(costs[best]) or not np.isfinite(fit.guess.states).all():
        return None
    network = with_start(_with_constants(network, fit.guess.shared), fit, scaled, keep_noises=True)
    return network, fit


def constants_std(network: Network, fit: Fit) -> tuple[float, ...]:
    """Standard errors of constant unknowns in physical units; 0 for the others."""
    unit = _unit(network)
    with jax.enable_x64(True):
        slope = jax.jit(jax.jacfwd(partial(in_physical_units, unit.system, unit.scales)))
        slopes = np.diagonal(np.asarray(slope(jnp.asarray(fit.guess.shared))))
    std = np.abs(slopes) * np.sqrt(np.maximum(np.diagonal(fit.covariance), 0))
    is_constant = np.isin(np.arange(len(std)), of_kind(unit.system, "constant"))
    return tuple(float(x) for x in np.where(is_constant, std, 0.0))


def with_arrays_of(network: Network, box: Network) -> Network:
    """The network with the constants, holds and filter of a grey box."""

    def parts(n: Any) -> list[Any]:
        return [n.unit.constants, n.unit.hold, n.inference]

    return eqx.tree_at(parts, network, parts(box))


def physical(unit: PhysicsUnit, shared: np.ndarray) -> np.ndarray:
    """Unknowns in physical units, with per-series terms of zero."""
    with jax.enable_x64(True):
        precise = eqx.tree_at(lambda u: u.constants, unit, np.asarray(shared, float))
        zeros = jnp.zeros(len(unit.varying)), jnp.zeros(len(unit.per_series))
        return np.asarray(jax.jit(lambda unit: unit.theta(*zeros))(precise))


def _with_scales_of_hidden(
    network: Network, guesses: list[Guess], scaled: Panel
) -> tuple[Network, list[Guess]]:
    """The network with scales of hidden states as they are along the best first trajectories."""
    unit, scales = _unit(network), network.scales
    hidden = scales.states.channel_of_state < 0
    if not hidden.any():
        return network, guesses
    valid = np.arange(scaled.times.shape[1]) < scaled.lengths[:, None]
    before = np.array(scales.states.state_scale)
    z = guesses[0].states[valid] * before
    mean, std = z.mean(0), z.std(0)
    std = np.maximum(std, 0.05 * np.abs(mean))
    scale = np.where(hidden & (std > 1e-3 * before), std, before)
    offset = np.where(hidden, mean / scale, scales.states.state_offset)
    states = scales_of_states(unit.system, scales.table, scales.states, scale, offset)
    scales = replace(scales, states=states)
    rescaled = [
        guess._replace(
            shared=from_physical_units(unit.system, scales, physical(unit, guess.shared)),
            states=guess.states * (before / scale),
        )
        for guess in guesses
    ]
    return build_network(unit.system, scales, network.config, 0), rescaled


def _with_best_hold(best: Candidate, judge: Judge, fitting: Fitting) -> tuple[Candidate, Hold]:
    """The candidate with the hold of the controls that forecasts the validation part best."""
    network = best.network
    unit, chosen = _unit(network), network.config.control_hold
    if chosen != "auto" or set(fitting.scaled.control_names) <= set(unit.system.holds):
        return best, chosen
    chosen = "previous"
    for hold in ("linear", "mean"):
        settings = network.config.model_copy(update={"control_hold": hold})
        weights = parameter(hold_weights(unit.system, fitting.scaled.control_names, settings))
        held = eqx.tree_at(lambda n: n.unit.hold, network, weights)
        fit = fitting.fit(_unit(held), best.fit.guess)
        held = _with_constants(held, fit.guess.shared)
        error = judge.error(held)
        if error < _GAIN * best.error:
            best, chosen = Candidate(held, fit, error), hold
    return best, chosen


def _unit(network: Network) -> PhysicsUnit:
    assert isinstance(network.unit, PhysicsUnit)
    return network.unit


def _with_hold(network: Network, hold: Hold) -> Network:
    """The same network, whose settings say which hold it has."""
    unit = _unit(network)
    settings = network.config.model_copy(update={"control_hold": hold})
    rebuilt = build_network(unit.system, network.scales, settings, 0)
    arrays = jax.tree.leaves(eqx.filter(network, eqx.is_array))
    own, static = eqx.partition(rebuilt, eqx.is_array)
    return eqx.combine(jax.tree.unflatten(jax.tree.structure(own), arrays), static)


def _with_constants(network: Network, shared: np.ndarray) -> Network:
    return eqx.tree_at(lambda n: n.unit.constants, network, parameter(shared))
