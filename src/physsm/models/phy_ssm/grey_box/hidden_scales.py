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
    offset = np.where(hidden, mean / scale, scales.states.state_offset)
    states = scales_of_states(unit.system, scales.table, scales.states, scale, offset)
    scales = replace(scales, states=states)

    def rescaled(one: FirstFit) -> FirstFit:
        shared = from_physical_units(unit.system, scales, physical(unit, one.guess.shared))
        guess = one.guess._replace(shared=shared, states=one.guess.states * (before / scale))
        return one._replace(guess=guess)

    network = build_network(unit.system, scales, network.config, 0)
    return network, [rescaled(one) for one in first]
