"""A transition without physics, in the form of the Phy-SSM unit."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numpy.random import Generator

from physsm.models._latent.plan import Plan
from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.stacks import make_stack
from physsm.models.phy_ssm.values import Drive, Features
from physsm.nn.discretise import Discrete
from physsm.nn.mlp import MLP, Dense
from physsm.nn.s5 import S5Stack


class FreeUnit(eqx.Module):
    """A transition without physics: the next latent from an S5 stack over latents and controls.

    `features` are the outputs of the stack, and `advance` adds to the latent what a perceptron
    makes of them, the next control and the gap.
    """

    inputs: Dense
    network: S5Stack
    outputs: MLP
    plan: Plan = eqx.field(static=True)
    latent: int = eqx.field(static=True)

    def __init__(self, plan: Plan, config: Config, rng: Generator):
        self.plan = plan
        self.latent = config.latent or len(plan.channels)
        width, m = config.unit.width or self.latent, len(plan.controls)
        self.inputs = Dense(self.latent + m, width, rng)
        self.network = make_stack(config.unit, width, config, rng)
        self.outputs = MLP(
            width + m + 1,
            config.unknown_hidden,
            1,
            self.latent,
            rng,
            activation="gelu",
            last_gain=0.1,
        )

    @property
    def dtype(self) -> jnp.dtype:
        """The precision of the parameters."""
        return self.inputs.W.dtype

    @property
    def size(self) -> int:
        """The size of the latent."""
        return self.latent

    @property
    def per_series(self) -> tuple[int, ...]:
        """No unknowns."""
        return ()

    def limits(self) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """A latent has no bounds."""
        infinite = jnp.full(self.latent, np.inf, self.inputs.W.dtype)
        return -infinite, infinite

    def start(self) -> Float[Array, "depth states"]:
        """The states of the S5 stack before the first row."""
        return self.network.start()

    def extend(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        """Nothing is lifted."""
        return z

    def centred(self, z_ext: Float[Array, "*steps n"]) -> Float[Array, "*steps n"]:
        """A latent has no mean to take off."""
        return z_ext

    def features(
        self,
        z_ext: Float[Array, "steps *batch n"],
        u: Float[Array, "steps *batch controls"],
        gaps: Float[Array, " steps *batch"],
    ) -> Features:
        """Outputs of the stack at all rows from the first on."""
        start = self.network.start(*gaps.shape[1:])
        outputs, states = self.network(self._joined(z_ext, u), gaps, start)
        return Features(outputs, outputs[-1], jnp.moveaxis(states, 0, -2))

    def discrete(self, gaps: Float[Array, "*shape"]) -> Discrete:
        """What `feature_step` needs to know of gaps; for many of them at once, before a loop."""
        return self.network.discrete(gaps)

    def feature_step(
        self,
        z_ext: Float[Array, " n"],
        u: Float[Array, " controls"],
        discrete: Discrete | None,
        carry: Float[Array, "depth states"],
    ) -> tuple[Float[Array, " width"], Float[Array, "depth states"]]:
        """The same for one row."""
        assert discrete is not None
        return self.network.step(self._joined(z_ext, u), discrete, carry)

    def theta(
        self, features: Float[Array, " width"], series_terms: Float[Array, " none"]
    ) -> Float[Array, " width"]:
        """The outputs of the stack as they are."""
        return features

    def advance(
        self,
        z_ext: Float[Array, " n"],
        theta: Float[Array, " width"],
        drive: Drive,
    ) -> Float[Array, " n"]:
        """The latent after a gap."""
        u_next = self.plan.scale_controls(drive.u_next)
        inputs = jnp.concatenate([theta, u_next, drive.gap[None]])
        return z_ext + self.outputs(inputs)

    def _joined(self, z_ext: Array, u: Array) -> Array:
        return self.inputs(jnp.concatenate([z_ext, self.plan.scale_controls(u)], axis=-1))
