"""Simulation of pieces, and the normal equations of its errors.

Variables are scaled: `local` holds the initial state of a piece, then its per-series terms;
`shared` holds the unknowns as the unit trains them, before they are mapped into their bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from physsm._programs import serialisable
from physsm.models.phy_ssm.grey_box.pieces import Numbers, Pieces
from physsm.models.phy_ssm.unit import PhysicsUnit
from physsm.models.phy_ssm.values import Drive


class Priors(NamedTuple):
    """Centres of the variables and their weights, one over a variance."""

    local: Float[Numbers, "*starts pieces q"]
    local_weight: Float[Numbers, " q"]
    shared: Float[Numbers, "*starts k"]
    shared_weight: Float[Numbers, " k"]


class Normal(NamedTuple):
    """Cost and normal equations: blocks of J'J and J'r for local and shared variables; and what was
    simulated: states at all rows, sums of squared errors of each channel and of products of
    neighbouring errors, and the parts of J'r and of the cost that each piece gives.
    """

    cost: Float[Numbers, "*starts"]
    local_local: Float[Numbers, "*starts pieces q q"]
    local_shared: Float[Numbers, "*starts pieces q k"]
    shared_shared: Float[Numbers, "*starts k k"]
    local: Float[Numbers, "*starts pieces q"]
    shared: Float[Numbers, "*starts k"]
    states: Float[Numbers, "*starts pieces rows n"]
    squares: Float[Numbers, "*starts channels"]
    lagged: Float[Numbers, "*starts channels"]
    shared_of_piece: Float[Numbers, "*starts pieces k"]
    cost_of_piece: Float[Numbers, "*starts pieces"]


serialisable(Normal)


def simulate(
    unit: PhysicsUnit, shared: Float[Array, " k"], local: Float[Array, " q"], piece: Pieces
) -> tuple[Float[Array, "rows n"], Float[Array, "rows channels"]]:
    """Scaled states and channels of one piece."""
    unit = eqx.tree_at(lambda unit: unit.constants, unit, shared)
    size = unit.size
    theta = unit.theta(jnp.zeros(len(unit.varying), shared.dtype), local[size:])
    controls, gaps = jnp.asarray(piece.controls), jnp.asarray(piece.gaps)

    def step(z_ext: Array, inputs: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        u, u_next, gap = inputs
        after = unit.clip(unit.advance(z_ext, theta, Drive(u, u_next, gap)))
        after = jnp.where(gap > 0, after, z_ext)
        return after, after

    first = unit.clip(unit.extend(local[:size]))
    _, later = lax.scan(step, first, (controls[:-1], controls[1:], gaps[1:]))
    z_ext = jnp.concatenate([first[None], later])
    return z_ext[:, :size], jax.vmap(unit.observe)(z_ext, controls)


def simulated_channels(
    unit: PhysicsUnit,
    shared: Float[Array, " k"],
    local: Float[Array, "pieces q"],
    pieces: Pieces,
) -> Float[Array, "pieces rows channels"]:
    """Scaled channels of all pieces."""
    return jax.vmap(lambda local, piece: simulate(unit, shared, local, piece)[1])(local, pieces)


def _normal_of_piece(
    unit: PhysicsUnit, shared: Array, local: Array, piece: Pieces
) -> tuple[Array, ...]:
    """Cost and blocks of one piece."""
    size = len(local)

    def errors(both: Array) -> tuple[Array, tuple[Array, Array]]:
        states, channels = simulate(unit, both[size:], both[:size], piece)
        weighted = (piece.weight * (channels - piece.values)).reshape(-1)
        return weighted, (weighted, states)

    both_variables = jnp.concatenate([local, shared])
    jacobian, (error, states) = jax.jacfwd(errors, has_aux=True)(both_variables)
    by_row = error.reshape(piece.weight.shape)
    both, gradient = jacobian.T @ jacobian, jacobian.T @ error
    return (
        (error**2).sum(),
        both[:size, :size],
        both[:size, size:],
        both[size:, size:],
        gradient[:size],
        gradient[size:],
        states,
        (by_row**2).sum(0),
        (by_row[1:] * by_row[:-1]).sum(0),
    )


def normal_equations(
    unit: PhysicsUnit,
    shared: Float[Numbers, "starts k"],
    local: Float[Numbers, "starts pieces q"],
    pieces: Pieces,
    priors: Priors,
) -> Normal:
    """Normal equations at several starts, with the priors."""

    def one(shared: Array, local: Array, centre: Array, shared_centre: Array) -> Normal:
        def of_piece(local: Array, piece: Pieces) -> tuple[Array, ...]:
            return _normal_of_piece(unit, shared, local, piece)

        parts = jax.vmap(of_piece)(local, pieces)
        cost, local_local, local_shared, shared_shared, of_local, of_shared, *simulated = parts
        states, squares, lagged = simulated
        moved, moved_shared = local - centre, shared - shared_centre
        local_weight, shared_weight = (
            jnp.asarray(priors.local_weight),
            jnp.asarray(priors.shared_weight),
        )
        cost_of_piece = cost + (local_weight[None] * moved**2).sum(1)
        return Normal(
            cost=cost_of_piece.sum() + (shared_weight * moved_shared**2).sum(),
            local_local=local_local + jnp.diag(local_weight)[None],
            local_shared=local_shared,
            shared_shared=shared_shared.sum(0) + jnp.diag(shared_weight),
            local=of_local + local_weight[None] * moved,
            shared=of_shared.sum(0) + shared_weight * moved_shared,
            states=states,
            squares=squares.sum(0),
            lagged=lagged.sum(0),
            shared_of_piece=of_shared,
            cost_of_piece=cost_of_piece,
        )

    return jax.vmap(one)(shared, local, priors.local, priors.shared)
