"""Scales of hidden states, as they are along the best first trajectories."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from physsm._values import Panel
from physsm.models._network.state_scales import scales_of_states
from physsm.models._network.unknowns import from_physical_units
from physsm.models.phy_ssm.build import build_network
from physsm.models.phy_ssm.grey_box.candidates import physics_unit
from physsm.models.phy_ssm.grey_box.first_fit import FirstFit
from physsm.models.phy_ssm.grey_box.starts import physical
from physsm.models.phy_ssm.network import Network


def with_scales_of_hidden(
    network: Network, first: list[FirstFit], scaled: Panel
) -> tuple[Network, list[FirstFit]]:
    """The network with scales of hidden states as they are along the best first trajectories."""
    unit, scales = physics_unit(network), network.scales
    hidden = scales.states.channel_of_state < 0
    if not hidden.any():
        return network, first
    valid = np.arange(scaled.times.shape[1]) < scaled.lengths[:, None]
    before = scales.states.state_scale
    z = first[0].guess.states[valid] * before
    if not np.isfinite(z).all():
        return network, first
    mean, std = z.mean(0), z.std(0)
    std = np.maximum(std, 0.05 * np.abs(mean))
    scale = np.where(hidden & (std > 1e-3 * before), std, before)
    network = _with_scales(network, scale, mean)
    scales = network.scales

    def rescaled(one: FirstFit) -> FirstFit:
        shared = from_physical_units(unit.system, scales, physical(unit, one.guess.shared))
        guess = one.guess._replace(shared=shared, states=one.guess.states * (before / scale))
        return one._replace(guess=guess)

    return network, [rescaled(one) for one in first]


def with_sizes_of_measured(network: Network) -> list[Network]:
    """The network with hidden states of the size of the measured ones, while their own scales are
    a guess from the controls that act on them; empty if no state is hidden, or none is measured.
    """
    states = network.scales.states
    hidden = states.channel_of_state < 0
    if hidden.all() or not hidden.any():
        return []
    scale, mean = states.state_scale, states.state_scale * states.state_offset
    measured = np.median(scale[~hidden]), np.median(np.abs(mean[~hidden]))
    scale = np.where(hidden, measured[0], scale)
    return [_with_scales(network, scale, np.where(hidden, np.copysign(measured[1], mean), mean))]


def _with_scales(network: Network, scale: np.ndarray, mean: np.ndarray) -> Network:
    """The network with other scales and means of hidden states, in physical units."""
    scales = network.scales
    hidden = scales.states.channel_of_state < 0
    offset = np.where(hidden, mean / scale, scales.states.state_offset)
    system = physics_unit(network).system
    states = scales_of_states(system, scales.table, scales.states, scale, offset)
    return build_network(system, replace(scales, states=states), network.config, 0)
