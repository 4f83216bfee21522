"""Records that pass between the parts of the network.

Values are scaled as `scales.py` says. Controls are in their own units.
"""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Array, Float

from physsm._programs import serialisable
from physsm.nn.gaussian import Gaussian


class Encoded(NamedTuple):
    """Output of the encoder at each time step: the latent, and terms of the per-series unknowns."""

    posterior: Gaussian
    series_terms: Float[Array, "*steps per_series"]


class Drive(NamedTuple):
    """Inputs of a transition: the controls at both of its ends, and the gap between them."""

    u: Float[Array, "*steps controls"]
    u_next: Float[Array, "*steps controls"]
    gap: Float[Array, "*steps"]


class Features(NamedTuple):
    """Outputs of a unit's network at all time steps and at the last, computed separately: a
    forecast needs no other. `carry` is the state of its S5 stack after the last step.
    """

    steps: Float[Array, "steps *batch features"]
    last: Float[Array, "*batch features"]
    carry: Float[Array, "*batch depth states"]


class UnitState(NamedTuple):
    """State of the unit after a time step: the outputs of its network, and its S5 states."""

    features: Float[Array, "*batch features"]
    carry: Float[Array, "*batch depth states"]


class EncodedState(NamedTuple):
    """Latent state of a series that the encoder alone infers."""

    posterior: Gaussian
    z_ext: Float[Array, "*batch d"]
    series_terms: Float[Array, "*batch per_series"]


class FilteredState(NamedTuple):
    """Latent state of a series that a Kalman filter infers.

    `covariance` is that of states and series terms together; `is_started` is 1 from the first
    measured time step on.
    """

    z_ext: Float[Array, "*batch d"]
    series_terms: Float[Array, "*batch per_series"]
    covariance: Float[Array, "*batch q q"]
    is_started: Float[Array, "*batch"]


LatentState = EncodedState | FilteredState


class Boundary(NamedTuple):
    """Everything that the future of a series depends on: the state of each part after its last
    time step, and the last control.
    """

    encoder: Float[Array, "*batch depth states"]
    latent: LatentState
    unit: UnitState
    decoder: Float[Array, "*batch lags width"]
    control: Float[Array, "*batch controls"]


class Inferred(NamedTuple):
    """Result of inference on a context. `predicted[i]` is the extended state at step i+1 as
    predicted from step i, `prior[i]` its distribution, and `channel_variance[i]` the variance of
    scaled channels there without errors of measurement (0 where inference predicts none); `latent`
    and `unit` are states at the end.

    In a batch the series come after time; in states, which have no time, they come first.
    """

    posterior: Gaussian
    z_ext: Float[Array, "steps *batch d"]
    theta: Float[Array, "steps *batch unknowns"]
    theta_std: Float[Array, "steps *batch unknowns"]
    predicted: Float[Array, "before *batch d"]
    prior: Gaussian
    channel_variance: Float[Array, "before *batch channels"]
    latent: LatentState
    unit: UnitState


class Step(NamedTuple):
    """State of the filter between two time steps."""

    latent: FilteredState
    unit: UnitState
    control: Float[Array, "*batch controls"]


class FilterSteps(NamedTuple):
    """The filter at each time step: mean and covariance of states and series terms after it, the
    predicted mean before it, and slope and noise of the transition that led to it.
    """

    mean: Float[Array, "steps *batch q"]
    covariance: Float[Array, "steps *batch q q"]
    predicted: Float[Array, "steps *batch q"]
    slope: Float[Array, "steps *batch q q"]
    noise: Float[Array, "steps *batch q"]


class Rollout(NamedTuple):
    """The future: extended states, and the unknowns that led to each of them."""

    z_ext: Float[Array, "steps d"]
    theta: Float[Array, "steps features"]


serialisable(
    Gaussian, UnitState, EncodedState, FilteredState, Boundary, Inferred, FilterSteps, Rollout
)
