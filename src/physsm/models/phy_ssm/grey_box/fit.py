"""The fit of a grey box: start → shooting → filter, each stage from where the last one ended."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from physsm._errors import TrainingError
from physsm.data.parts import Parts
from physsm.models._network.fitted import Stage
from physsm.models._network.unknowns import in_physical_units, of_kind
from physsm.models.phy_ssm.build import build_network
from physsm.models.phy_ssm.bypass_inputs import PhySSMScales
from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.grey_box.candidates import (
    GOOD_ERROR,
    Candidate,
    Fitting,
    Judge,
    physics_unit,
    with_best_hold,
    with_hold,
)
from physsm.models.phy_ssm.grey_box.pieces import number_of_pieces
from physsm.models.phy_ssm.grey_box.search import search, with_longer_pieces
from physsm.models.phy_ssm.grey_box.shooting import Fit
from physsm.models.phy_ssm.grey_box.substeps import with_more_substeps
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.not_finite import explain_not_finite
from physsm.physics.system import System

_NEAR_ERROR = 1.1  # times the validation error of shorter pieces, at most
_LONGER = 8  # times the asked length, of longer pieces


@dataclass(frozen=True, eq=False, kw_only=True)
class GreyBox:
    """A fitted grey box: its network, the guess at which shooting ended, and its stages.

    `length` is the number of rows of a piece, `likelihood` the weight of the likelihood one step
    ahead that served forecasts best.
    """

    network: Network
    fit: Fit
    stages: tuple[Stage, ...]
    length: int
    likelihood: float

    @property
    def is_good(self) -> bool:
        """Whether its validation error is so small that no other minimum needs to be looked for."""
        errors = [stage.error for stage in self.stages if stage.kept]
        return errors[-1] is not None and errors[-1] < GOOD_ERROR


def fit_grey_box(
    system: System, scales: PhySSMScales, config: Config, parts: Parts, seed: int
) -> GreyBox:
    """Constants and initial states from the training part, noises of the filter from windows of
    both parts. Costs choose between minima, the validation part the length of pieces, the hold of
    the controls and the weight of the likelihood.
    """
    is_trained = config.unknown_network != "none" and bool(of_kind(system, "varying"))
    config = config.model_copy(update={"unknown_network": "none"})
    network = build_network(system, scales, config, seed)
    scaled = scales.table.scale(parts.train.panel)
    asked = parts.sizes.context + parts.sizes.horizon
    fitting = Fitting(scaled, asked, _all_pieces(parts, asked))
    judge = Judge(network, parts)
    start, minima = search(network, fitting, judge, seed, is_trained)
    best = minima[0]
    if not best.fit.is_finite:
        raise _hopeless(best, judge)
    for length in _longer(asked, int(scaled.lengths.max())):
        longer = Fitting(scaled, length, _all_pieces(parts, length))
        candidate = with_longer_pieces(minima, longer, judge)
        # The fit to longer pieces, unless it is clearly worse: its constants are more certain, and
        # forecasts may be asked for more later.
        is_near = candidate.error < _NEAR_ERROR * best.error
        if is_near and not judge.prefers(best.network, candidate.network):
            best, fitting = candidate, longer
    before, (best, hold) = (best, with_best_hold(best, judge, fitting))
    if config.substeps is None and (fitting.length != asked or best is not before):
        best = with_more_substeps(best, hold, judge, fitting, is_trained)
    chosen, likelihood = judge.with_noises(best)
    error = chosen.error
    if start.fit.is_finite and judge.prefers(start.network, chosen.network):
        (chosen, likelihood), best, hold = judge.with_noises(start), start, config.control_hold
    stages = (
        Stage(name="start", error=_finite(start.error), kept=True),
        Stage(name="grey box", error=_finite(error), kept=best is not start),
    )
    return GreyBox(
        network=with_hold(chosen.network, hold),
        fit=best.fit,
        stages=stages,
        length=fitting.length,
        likelihood=likelihood,
    )


def _hopeless(best: Candidate, judge: Judge) -> TrainingError:
    """The error of a text whose simulations are finite from no start."""
    reason = explain_not_finite(best.network, judge.batch, judge.context)
    return TrainingError(
        "the physics cannot be simulated: from every start and with every tried value of the "
        f"unknowns, a state was not a finite number{f'. {reason}' if reason else ''}\n"
        "  check the signs of the text against the data (a root or a logarithm of a negative "
        "number?), and set bounds on the unknowns and states (state x >= 0)"
    )


def _finite(error: float) -> float | None:
    return error if np.isfinite(error) else None


def _all_pieces(parts: Parts, length: int) -> int:
    """Number of pieces of the later fit to all rows: with as many, one program serves both."""
    panels = parts.train.panel, parts.validation.panel
    return sum(number_of_pieces(panel, length) for panel in panels)


def _longer(asked: int, longest: int) -> list[int]:
    """The length of longer pieces to try, where series are much longer than asked."""
    return [] if longest < 2 * asked else [min(longest, _LONGER * asked)]


def constants_std(network: Network, fit: Fit) -> tuple[float, ...]:
    """Standard errors of unknowns that are constant in a grey box; 0 for those of each series."""
    unit = physics_unit(network)
    with jax.enable_x64(True):
        slope = jax.jit(jax.jacfwd(partial(in_physical_units, unit.system, unit.scales)))
        slopes = np.diagonal(np.asarray(slope(jnp.asarray(fit.guess.shared))))
    std = np.abs(slopes) * np.sqrt(np.maximum(np.diagonal(fit.covariance), 0))
    is_per_series = np.isin(np.arange(len(std)), of_kind(unit.system, "per series"))
    return tuple(float(x) for x in np.where(is_per_series, 0.0, std))


def with_arrays_of(network: Network, box: Network) -> Network:
    """The network with the constants, holds and filter of a grey box."""

    def parts(n: Any) -> list[Any]:
        return [n.unit.constants, n.unit.hold, n.inference]

    return eqx.tree_at(parts, network, parts(box))
