"""Values inside a history, at its rows and between them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from physsm._values import Panel
from physsm.models._base import Prediction, straight_lines
from physsm.models.phy_ssm import compute
from physsm.models.phy_ssm.direct import free_channels
from physsm.models.phy_ssm.on_panels import OnPanels, series_first
from physsm.models.phy_ssm.smooth import smooth, with_rows_at
from physsm.models.phy_ssm.values import Drive


def values_inside(
    model: OnPanels,
    panel: Panel,
    wanted: Float[np.ndarray, "series steps"],
    noise: Sequence[float],
) -> Prediction:
    """By a smoother where there is a filter, else between inferred states; `noise` is the scaled
    spread of what no filter accounts for.
    """
    find = _between if model.network.filter is None else _smoothed
    z_ext, channels, spread = find(model, panel, wanted, np.array(noise))
    spread = spread * np.array(model.plan.channel_scale)
    values = model.in_units(channels)
    if model.network.direct_path is not None:  # the decoder alone does not make these channels
        free = free_channels(model.plan)
        values[..., free] = straight_lines(panel, wanted)[..., free]
    return Prediction(values, spread, model.states(z_ext), None)


Found = tuple[np.ndarray, np.ndarray, np.ndarray]  # extended states, scaled channels, their spread


def _smoothed(model: OnPanels, panel: Panel, wanted: np.ndarray, noise: np.ndarray) -> Found:
    """Given all measurements of the series; a wanted time becomes a row without measurements."""
    learned = model.network.filter
    assert learned is not None
    longer = with_rows_at(panel, wanted, model.controls_at)
    own = longer.own_from_right(model.length(longer.panel))
    mean, covariance = smooth(model.over(compute.beliefs, longer.panel, own))
    at, size = (np.arange(len(panel))[:, None], longer.place), model.network.unit.size
    z = series_first(mean[..., :size], longer.panel)[at]
    variance = series_first(np.diagonal(covariance, axis1=-2, axis2=-1), longer.panel)[at]
    found = model.run(compute.decode_states, model.array(z))
    z_ext, channels = (np.asarray(part) for part in found)
    spread = np.broadcast_to(noise, channels.shape).copy()
    error = np.asarray(learned.error())
    for channel, state in enumerate(model.plan.grounded):
        if state >= 0:
            spread[..., channel] = np.sqrt(variance[..., state].clip(0) + error[state])
    return z_ext, channels, spread


def _between(model: OnPanels, panel: Panel, wanted: np.ndarray, noise: np.ndarray) -> Found:
    """At rows the inferred states; between two rows a mean of the step forwards from the one and
    backwards from the other, weighted by nearness.
    """
    observed = model.over(compute.observe, panel)
    place = np.stack(
        [
            np.clip(np.searchsorted(one.times, at, side="right") - 1, 0, max(len(one.times) - 2, 0))
            for one, at in zip(panel, wanted, strict=True)
        ]
    )
    series = np.arange(len(panel))[:, None]
    later = np.minimum(place + 1, panel.lengths[:, None] - 1)
    before, after = panel.times[series, place], panel.times[series, later]
    width = np.where(after > before, after - before, 1)  # zero where a series has one row
    share = ((wanted - before) / width)[..., None]
    u = panel.controls[series, place]
    u_at = np.stack([model.controls_at(*pair) for pair in zip(panel, wanted, strict=True)])
    z_ext, theta = series_first(observed.z_ext, panel), series_first(observed.theta, panel)
    z_before, z_after = z_ext[series, place], z_ext[series, later]
    forwards = _advance(model, z_before, theta[series, place], u, u_at, wanted - before)
    backwards = _advance(model, z_after, theta[series, later], u_at, u_at, wanted - after)
    forwards = np.where(share == 0, z_before, forwards)
    backwards = np.where(share == 1, z_after, backwards)
    mixed = (1 - share) * forwards + share * backwards
    channels = np.asarray(model.run(compute.decode, model.array(mixed)))
    return mixed, channels, np.broadcast_to(noise, channels.shape)


def _advance(
    model: OnPanels,
    z_ext: np.ndarray,
    theta: np.ndarray,
    u: np.ndarray,
    u_next: np.ndarray,
    gaps: np.ndarray,
) -> np.ndarray:
    """States (series, rows, d) after a gap each, in the table's unit of time."""
    flat = (
        model.array(leaf.reshape(gaps.size, *leaf.shape[2:]))
        for leaf in (z_ext, theta, u, u_next, gaps / model.plan.time_scale)
    )
    z, theta, u, u_next, gaps = flat
    after = model.run(compute.advance_rows, z, theta, Drive(u, u_next, gaps))  # type: ignore[arg-type]
    return np.asarray(after).reshape(z_ext.shape)
