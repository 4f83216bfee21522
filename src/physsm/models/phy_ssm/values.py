"""What passes between the parts of the network.

Values are scaled as the plan says. Controls are in their own units.
"""

from __future__ import annotations

from typing import NamedTuple

from jaxtyping import Array, Float

from physsm._programs import serialisable
from physsm.nn.gaussian import Gaussian


class Inferred(NamedTuple):
    """What the encoder says of each row: the latent, and terms of the per-series unknowns."""

    posterior: Gaussian
    series_terms: Float[Array, "*steps per_series"]


class Drive(NamedTuple):
    """What carries a state from one row to the next: the controls at both, and the gap between."""

    u: Float[Array, "*steps controls"]
    u_next: Float[Array, "*steps controls"]
    gap: Float[Array, "*steps"]


class Features(NamedTuple):
    """What a unit's network says at all rows and, computed apart, at the last: a forecast needs no
    other. `carry` are the states of its S5 stack after the last row.
    """

    rows: Float[Array, "steps *batch features"]
    last: Float[Array, "*batch features"]
    carry: Float[Array, "*batch depth states"]


class Boundary(NamedTuple):
    """All that the future depends on: the state of a stream after its last row.

    `covariance` is that of states and series terms together, where they are filtered, else empty;
    `is_started` is 1 from the first row on. `lags` are the last rows, latest first, that a direct
    path goes on from; without one they are empty.
    """

    encoder: Float[Array, "depth states"]
    unit: Float[Array, "unit_depth unit_states"]
    posterior: Gaussian
    z_ext: Float[Array, " d"]
    features: Float[Array, " features"]
    series_terms: Float[Array, " per_series"]
    control: Float[Array, " controls"]
    covariance: Float[Array, "q q"]
    is_started: Float[Array, ""]
    lags: Float[Array, "depth width"]


class Observed(NamedTuple):
    """The observed part: `predicted[i]` is row i+1 as predicted from row i, `prior[i]` likewise.

    In a batch the series come after time; in the boundary, which has no time, they come first.
    """

    posterior: Gaussian
    z_ext: Float[Array, "steps *batch d"]
    theta: Float[Array, "steps *batch unknowns"]
    theta_std: Float[Array, "steps *batch unknowns"]
    predicted: Float[Array, "before *batch d"]
    prior: Gaussian
    boundary: Boundary


class Beliefs(NamedTuple):
    """What the filter holds of each row: mean and covariance of states and series terms after it,
    the mean as predicted before it, and slope and noise of the transition that led to it.
    """

    mean: Float[Array, "steps *batch q"]
    covariance: Float[Array, "steps *batch q q"]
    predicted: Float[Array, "steps *batch q"]
    slope: Float[Array, "steps *batch q q"]
    noise: Float[Array, "steps *batch q"]


class Rollout(NamedTuple):
    """The future: extended states, and the unknowns that led from each to the next."""

    z_ext: Float[Array, "steps d"]
    theta: Float[Array, "steps features"]


serialisable(Gaussian, Boundary, Observed, Beliefs, Rollout)
