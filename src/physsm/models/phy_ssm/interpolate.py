"""Interpolation: values inside a history, at its times and between them."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from physsm._values import Panel, Series
from physsm.models._base import Prediction
from physsm.models._interpolation import linear_interpolation
from physsm.models._network.compiled import CompiledNetwork
from physsm.models._network.observations import Observations, series_first
from physsm.models.phy_ssm import forecast
from physsm.models.phy_ssm.added_steps import with_steps_at
from physsm.models.phy_ssm.inference import AbstractInference, EncoderInference, over_axes
from physsm.models.phy_ssm.kalman import smooth
from physsm.models.phy_ssm.kalman_inference import KalmanInference
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.values import Drive, FilterSteps

_NOT_MEASURED = 1e6  # scaled: standard deviation of an encoder output that is not used


@singledispatch
def interpolate(
    inference: AbstractInference,
    compiled: CompiledNetwork,
    panel: Panel,
    wanted: Float[np.ndarray, "series steps"],
    noise: Float[np.ndarray, " channels"],
) -> Prediction:
    """Values at wanted times, by the network's inference; `noise` is the scaled spread of channels
    that measure no state.
    """
    raise TypeError(f"{type(inference).__name__} has no interpolation")


@interpolate.register
def _by_smoother(
    inference: KalmanInference,
    compiled: CompiledNetwork,
    panel: Panel,
    wanted: np.ndarray,
    noise: np.ndarray,
) -> Prediction:
    """Given all measurements of the series; a wanted time becomes a step without measurements."""
    network = compiled.network
    longer = with_steps_at(panel, wanted, lambda *args: _controls_at(network, *args))
    own = longer.own_from_right(forecast.batch_length(longer.panel))
    steps = forecast.over_series(compiled, _filter_steps, longer.panel, own)
    mean, covariance = smooth(steps)
    at, size = (np.arange(len(panel))[:, None], longer.place), network.unit.size
    z = series_first(mean[..., :size], longer.panel)[at]
    covariance = series_first(covariance[..., :size, :size], longer.panel)[at]
    arrays = map(compiled.array, (z, covariance, longer.panel.controls[at]))
    z_ext, channels, variance = map(np.asarray, compiled(_decode_states, *arrays))
    spread = np.broadcast_to(noise, channels.shape).copy()
    grounded = network.scales.states.grounded_channels
    total = variance.clip(0) + np.asarray(inference.noises.error_variance())
    spread[..., grounded] = np.sqrt(total[..., grounded])
    return _as_prediction(network, panel, wanted, (z_ext, channels, spread))


@interpolate.register
def _between_states(
    inference: EncoderInference,
    compiled: CompiledNetwork,
    panel: Panel,
    wanted: np.ndarray,
    noise: np.ndarray,
) -> Prediction:
    """At its times the inferred states; between two times a mean of the step forwards from the one
    and backwards from the other, weighted by nearness.
    """
    network = compiled.network
    inferred = forecast.over_series(compiled, forecast.infer, panel)
    place = np.stack(
        [
            np.clip(np.searchsorted(one.times, at, side="right") - 1, 0, max(len(one.times) - 2, 0))
            for one, at in zip(panel, wanted, strict=True)
        ]
    )
    series = np.arange(len(panel))[:, None]
    later = np.minimum(place + 1, panel.lengths[:, None] - 1)
    before, after = panel.times[series, place], panel.times[series, later]
    width = np.where(after > before, after - before, 1)  # zero where a series has one time
    share = ((wanted - before) / width)[..., None]
    u = panel.controls[series, place]
    u_at = np.stack([_controls_at(network, *pair) for pair in zip(panel, wanted, strict=True)])
    z_ext, theta = series_first(inferred.z_ext, panel), series_first(inferred.theta, panel)
    z_before, z_after = z_ext[series, place], z_ext[series, later]
    forwards = _advance(compiled, z_before, theta[series, place], u, u_at, wanted - before)
    backwards = _advance(compiled, z_after, theta[series, later], u_at, u_at, wanted - after)
    forwards = np.where(share == 0, z_before, forwards)
    backwards = np.where(share == 1, z_after, backwards)
    mixed = (1 - share) * forwards + share * backwards
    channels = np.asarray(compiled(_decode, compiled.array(mixed), compiled.array(u_at)))
    spread = np.broadcast_to(noise, channels.shape)
    return _as_prediction(network, panel, wanted, (mixed, channels, spread))


def _as_prediction(
    network: Network,
    panel: Panel,
    wanted: np.ndarray,
    scaled: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> Prediction:
    """Extended states, channels and their spread in the units of the table. Channels that states
    alone do not give are linear between measurements.
    """
    z_ext, channels, spread = scaled
    scales, past = network.scales, network.decoder.past_channels
    values = scales.table.unscale(channels)
    if len(past):
        values[..., past] = linear_interpolation(panel, wanted)[..., past]
    return Prediction(
        mean=values,
        spread=scales.table.unscale_spread(spread),
        states=scales.states.unscale(z_ext),
    )


def _advance(
    compiled: CompiledNetwork,
    z_ext: np.ndarray,
    theta: np.ndarray,
    u: np.ndarray,
    u_next: np.ndarray,
    gaps: np.ndarray,
) -> np.ndarray:
    """States (series, steps, d) after a gap each, in the table's unit of time."""
    scaled = gaps / compiled.network.scales.table.time_scale
    flat: list[Any] = [
        compiled.array(leaf.reshape(gaps.size, *leaf.shape[2:]))
        for leaf in (z_ext, theta, u, u_next, scaled)
    ]
    after = compiled(_advance_states, flat[0], flat[1], Drive(*flat[2:]))
    return np.asarray(after).reshape(z_ext.shape)


def _controls_at(
    network: Network, one: Series, times: Float[np.ndarray, " steps"]
) -> Float[np.ndarray, "steps controls"]:
    """Controls at times inside a series, as the unit holds them between two times."""
    held = one.controls[np.searchsorted(one.times, times, side="right") - 1]
    columns = [np.interp(times, one.times, column) for column in one.controls.T]
    linear = np.array(columns).reshape(one.controls.shape[1], len(times)).T
    return np.where(network.holds_previous, held, linear)


# Functions of a network, to be compiled.


def _filter_steps(
    network: Network, rows: Observations, own: Bool[Array, "steps series"]
) -> FilterSteps:
    """At time steps that are not a series' `own`, encoder outputs are not used: a query for a time
    must not count as a measurement.
    """
    encoded, _ = network.encoder(rows)
    std = jnp.where(own[..., None], encoded.posterior.std, _NOT_MEASURED)
    encoded = encoded._replace(posterior=encoded.posterior._replace(std=std))
    assert isinstance(network.inference, KalmanInference)
    return network.inference.filter_steps(network.unit, rows, encoded)


def _decode_states(
    network: Network,
    z: Float[Array, "series steps n"],
    covariance: Float[Array, "series steps n n"],
    controls: Float[Array, "series steps controls"],
) -> tuple[Array, Array, Array]:
    """Extended states, channels, and variances of the channels that the physics gives."""
    unit = network.unit

    def variance(z: Array, covariance: Array, u: Array) -> Array:
        slopes = jax.jacfwd(lambda z: unit.observe(unit.extend(z), u))(z)
        return (slopes @ covariance * slopes).sum(-1)

    z_ext = over_axes(unit.extend, 2)(z)
    return z_ext, network.decode(z_ext, controls), over_axes(variance, 2)(z, covariance, controls)


def _decode(network: Network, z_ext: Float[Array, "series steps d"], controls: Array) -> Array:
    return network.decode(z_ext, controls)


def _advance_states(network: Network, z_ext: Array, theta: Array, drive: Drive) -> Array:
    """States a gap after (or before, if negative) given ones, all as one flat batch."""
    return jax.vmap(network.unit.advance)(z_ext, theta, drive)
