"""Encoders of a window, from its last time step to its first."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float
from numpy.random import Generator

from physsm.models._encode_decode.config import Recurrent
from physsm.models._encode_decode.scales import TrajectoryScales
from physsm.models._network.config import Perceptron
from physsm.models._network.observations import Observations, is_step
from physsm.nn.gaussian import Gaussian, gaussian
from physsm.nn.mlp import MLP, Dense
from physsm.nn.recurrent import BothDirections, RecurrentStack, backwards

INITIAL_RAW_STD = -2.0  # of latents before training; a standard deviation of 0.13


class StepReader(eqx.Module):
    """A perceptron at each time step: of the last measurements, the mask, the controls, and the
    time until the next step.
    """

    perceptron: MLP
    scales: TrajectoryScales

    def __init__(self, scales: TrajectoryScales, shape: Perceptron, outputs: int, rng: Generator):
        self.scales = scales
        channels = len(scales.table.channels) * (2 if scales.table.shows_missing else 1)
        inputs = channels + len(scales.table.controls) + 1
        self.perceptron = MLP(inputs, shape.width, shape.layers, outputs, rng)

    def __call__(self, rows: Observations) -> Float[Array, "steps *batch outputs"]:
        """Outputs at each time step."""
        parts = [rows.last]
        parts += [rows.seen] if self.scales.table.shows_missing else []
        parts += [self.scales.table.scale_controls(rows.controls)]
        parts += [jnp.log1p(gaps_after(rows.gaps))[..., None]]
        return self.perceptron(jnp.concatenate(parts, axis=-1))


def gaps_after(gaps: Float[Array, " steps *batch"]) -> Float[Array, " steps *batch"]:
    """The gap that a backward encoder crosses before each step: zero at the last one."""
    return jnp.concatenate([gaps[1:], jnp.zeros_like(gaps[:1])])


class ReversedEncoder(eqx.Module):
    """A step reader and a recurrent stack, backwards in time."""

    reader: StepReader
    stack: RecurrentStack

    def __init__(
        self, scales: TrajectoryScales, shape: Perceptron, stack: Recurrent, rng: Generator
    ):
        self.reader = StepReader(scales, shape, stack.width, rng)
        self.stack = RecurrentStack(stack.width, stack.width, stack.depth, stack.cell, rng)

    def __call__(self, rows: Observations) -> Float[Array, "steps *batch width"]:
        """Hidden states at each time step, from that step and all after it."""
        return backwards(self.stack, self.reader(rows), is_step(rows))


class ParameterEncoder(eqx.Module):
    """A step reader, a recurrent stack in both directions, and a Gaussian of parameters that hold
    for the whole window.
    """

    reader: StepReader
    stack: BothDirections
    head: Dense

    def __init__(
        self,
        scales: TrajectoryScales,
        shape: Perceptron,
        stack: Recurrent,
        outputs: int,
        rng: Generator,
    ):
        self.reader = StepReader(scales, shape, stack.width, rng)
        self.stack = BothDirections(stack.width, stack.width, stack.depth, stack.cell, rng)
        self.head = Dense(2 * stack.width, 2 * outputs, rng)

    def __call__(self, rows: Observations) -> Gaussian:
        """The distribution of each window's parameters."""
        mean, raw = jnp.split(self.head(self.stack(self.reader(rows), is_step(rows))), 2, axis=-1)
        return gaussian(mean, raw + INITIAL_RAW_STD)
