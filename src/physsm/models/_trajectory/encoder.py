"""Readers of a window's rows, from the last to the first."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.random import Generator

from physsm.models._latent.plan import Plan
from physsm.models._latent.rows import Observations
from physsm.models._latent.settings import Perceptron
from physsm.models._trajectory.config import Recurrent
from physsm.nn.gaussian import Gaussian, gaussian
from physsm.nn.mlp import MLP, Dense
from physsm.nn.recurrent import BothDirections, RecurrentStack, backwards

CERTAIN = -2.0  # raw value of a std before training: 0.13


class RowReader(eqx.Module):
    """A perceptron on each row: on what was measured last, what is measured now, the controls, and
    the time until the next row.
    """

    perceptron: MLP
    plan: Plan = eqx.field(static=True)

    def __init__(self, plan: Plan, shape: Perceptron, outputs: int, rng: Generator):
        self.plan = plan
        channels = len(plan.channels) * (2 if plan.shows_missing else 1)
        inputs = channels + len(plan.controls) + 1
        self.perceptron = MLP(inputs, shape.width, shape.layers, outputs, rng)

    def __call__(self, rows: Observations) -> Float[Array, "steps *batch outputs"]:
        """What it makes of each row."""
        parts = [rows.last]
        parts += [rows.seen] if self.plan.shows_missing else []
        parts += [self.plan.scale_controls(rows.controls)]
        parts += [jnp.log1p(gaps_after(rows.gaps))[..., None]]
        return self.perceptron(jnp.concatenate(parts, axis=-1))


def gaps_after(gaps: Float[Array, " steps *batch"]) -> Float[Array, " steps *batch"]:
    """The time from each row to the next, none after the last: who reads backwards comes over it
    before the row.
    """
    return jnp.concatenate([gaps[1:], jnp.zeros_like(gaps[:1])])


def is_row(rows: Observations) -> Float[Array, " steps *batch"]:
    """1 for rows, 0 for padding."""
    return (rows.gaps > 0).astype(rows.gaps.dtype)


class ReversedEncoder(eqx.Module):
    """A reader of rows and a recurrent stack that goes over them backwards in time."""

    reader: RowReader
    stack: RecurrentStack

    def __init__(self, plan: Plan, shape: Perceptron, stack: Recurrent, rng: Generator):
        self.reader = RowReader(plan, shape, stack.width, rng)
        self.stack = RecurrentStack(stack.width, stack.width, stack.depth, stack.cell, rng)

    def __call__(self, rows: Observations) -> Float[Array, "steps *batch width"]:
        """At each row, what it has read of that row and all after it."""
        return backwards(self.stack, self.reader(rows), is_row(rows))


class ParameterEncoder(eqx.Module):
    """A reader of rows, a recurrent stack that goes over them both ways, and a Gaussian of what
    holds for the whole window.
    """

    reader: RowReader
    stack: BothDirections
    head: Dense

    def __init__(
        self, plan: Plan, shape: Perceptron, stack: Recurrent, outputs: int, rng: Generator
    ):
        self.reader = RowReader(plan, shape, stack.width, rng)
        self.stack = BothDirections(stack.width, stack.width, stack.depth, stack.cell, rng)
        self.head = Dense(2 * stack.width, 2 * outputs, rng)

    def __call__(self, rows: Observations) -> Gaussian:
        """For each window."""
        mean, raw = jnp.split(self.head(self.stack(self.reader(rows), is_row(rows))), 2, axis=-1)
        return gaussian(mean, raw + CERTAIN)
