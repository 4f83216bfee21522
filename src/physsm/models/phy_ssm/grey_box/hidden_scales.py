"""Scales of hidden states, as they are along the best first trajectories."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
from jaxtyping import Float

from physsm._values import Panel
from physsm.models._network.state_scales import scales_of_states, typical_size, typical_states
from physsm.models._network.unknowns import from_physical_units
from physsm.models.phy_ssm.build import build_network
from physsm.models.phy_ssm.grey_box.candidates import physics_unit
from physsm.models.phy_ssm.grey_box.first_fit import FirstFit
from physsm.models.phy_ssm.grey_box.starts import hidden_states, physical
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


def with_other_sizes_of_hidden(network: Network) -> list[Network]:
    """The network with hidden states of another size: their own scales are a guess from the
    controls that act on them. A state that drives known ones by a known factor has the size that
    moves them as fast as they change, others have that of the measured states. Empty if no state is
    hidden or none is known.
    """
    unit, states = physics_unit(network), network.scales.states
    hidden = hidden_states(unit)
    if hidden.all() or not hidden.any():
        return []
    scale, mean = states.state_scale, states.state_scale * states.state_offset
    time = states.signal_time * network.scales.table.time_scale
    driven = _known_slopes(network) * time
    sizes, middles = scale.copy(), mean.copy()
    for state in np.flatnonzero(hidden):
        rows = np.flatnonzero(~hidden & (driven[:, state] > 0))
        sizes[state] = np.median(scale[rows] / driven[rows, state] if len(rows) else scale[~hidden])
        middle = 0.0 if len(rows) else np.median(np.abs(mean[~hidden]))
        middles[state] = np.copysign(middle, mean[state])
    return [_with_scales(network, sizes, middles)]


def _known_slopes(network: Network) -> Float[np.ndarray, "driven state"]:
    """By how much each state changes the rate of each other one, at typical states, where all
    unknowns are zero: also as a factor of another state, as `x` in `g' = -[x]*g`.
    """
    system, table = physics_unit(network).system, network.scales.table
    u = table.control_shift[[table.controls.index(name) for name in system.controls]]
    theta = np.zeros(len(system.unknowns))
    scales = network.scales.states
    states = typical_states(system, scales.state_scale, scales.state_offset)[:1]
    slope = jax.jacfwd(lambda z: system.drift(theta, z, u))
    return typical_size(np.asarray(jax.jit(jax.vmap(jax.vmap(slope)))(states), float))[0]


def _with_scales(network: Network, scale: np.ndarray, mean: np.ndarray) -> Network:
    """The network with other scales and means of hidden states, in physical units."""
    scales = network.scales
    is_changed = scales.states.channel_of_state < 0
    offset = np.where(is_changed, mean / scale, scales.states.state_offset)
    system = physics_unit(network).system
    states = scales_of_states(system, scales.table, scales.states, scale, offset)
    return build_network(system, replace(scales, states=states), network.config, 0)
