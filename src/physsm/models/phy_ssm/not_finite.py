"""Where a loss that is not finite comes from: the state, the time step and the unknown."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.data.window import Batch
from physsm.models._network.observations import in_precision, observations
from physsm.models.phy_ssm.forecast import roll_out
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.unit import PhysicsUnit


def explain_not_finite(network: Network, batch: Batch, context: int) -> str | None:
    """A sentence on the first state of a batch that is not finite, or else that is farthest from
    its mean, and on the largest unknown; None without physics.
    """
    if not isinstance(network.unit, PhysicsUnit):
        return None
    system = network.unit.system
    states = eqx.filter_jit(_states)(network, batch, context)
    z, theta = (np.asarray(part, float) for part in states)
    z = z[..., : len(system.states)]
    wrong = ~np.isfinite(z)
    if wrong.any():
        step = int(wrong.any((1, 2)).argmax())
        state = system.states[int(wrong[step].any(0).argmax())]
        sentence = f"The state {state} is not finite from time step {step + 1} of a window on"
    else:
        step, _, index = np.unravel_index(np.abs(z).argmax(), z.shape)
        scaled = abs(z[step, :, index]).max()
        sentence = (
            f"All states are finite; the largest is {system.states[index]}, {scaled:.3g} of its "
            f"scales at time step {step + 1} of a window"
        )
    where = "context" if step < context else "target"
    return f"{sentence} (in the {where}){_largest_unknown(network, theta[: step + 1])}"


def _largest_unknown(network: Network, theta: Float[np.ndarray, "steps batch unknowns"]) -> str:
    """The unknown with the largest magnitude relative to its natural size."""
    assert isinstance(network.unit, PhysicsUnit)
    unknowns = network.unit.system.unknowns
    if not unknowns:
        return ""
    relative = np.abs(theta) / network.scales.states.unknown_size
    relative = np.where(np.isfinite(relative), relative, np.inf).max((0, 1))
    worst = int(relative.argmax())
    size = f"{relative[worst]:.3g} times" if np.isfinite(relative[worst]) else "not finite, beside"
    return f"; the largest unknown until then is {unknowns[worst].name}, {size} its natural size"


def _states(
    network: Network, batch: Batch, context: int
) -> tuple[Float[Array, "steps batch d"], Float[Array, "steps batch unknowns"]]:
    """Inferred states and unknowns of the contexts, then those of the rollouts, by means."""
    rows = observations(in_precision(batch, network.dtype))
    past, ahead = (
        jax.tree.map(lambda leaf, part=part: leaf[part], rows)
        for part in (slice(None, context), slice(context, None))
    )
    inferred, boundary = network.observe(past, None)
    future, _ = roll_out(network, boundary, ahead.controls, ahead.gaps)
    return (
        jnp.concatenate([inferred.z_ext, future.z_ext]),
        jnp.concatenate([inferred.theta, future.theta]),
    )
