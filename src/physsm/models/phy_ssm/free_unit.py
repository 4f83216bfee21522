"""A transition without physics, with the interface of the Phy-SSM unit."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numpy.random import Generator

from physsm.models._network.scales import TableScales
from physsm.models.phy_ssm.abstract_unit import AbstractUnit
from physsm.models.phy_ssm.config import Config, make_stack
from physsm.models.phy_ssm.values import Drive, Features
from physsm.nn.discretise import Discrete
from physsm.nn.mlp import MLP, Dense
from physsm.nn.s5 import S5Stack


class FreeUnit(AbstractUnit):
    """The next latent from an S5 stack over latents and controls.

    `features` are the outputs of the stack; `advance` adds to the latent a perceptron of them, the
    next control and the gap.
    """

    inputs: Dense
    network: S5Stack
    outputs: MLP
    table: TableScales
    latent: int = eqx.field(static=True)

    def __init__(self, table: TableScales, config: Config, rng: Generator):
        self.table = table
        self.latent = config.latent or len(table.channels)
        width, m = config.unit.width or self.latent, len(table.controls)
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
    def size(self) -> int:
        """The size of the latent."""
        return self.latent

    @property
    def extended_size(self) -> int:
        """The size of the latent: nothing is lifted."""
        return self.latent

    @property
    def dtype(self) -> jnp.dtype:
        """The precision of the parameters."""
        return self.inputs.W.dtype

    @property
    def per_series(self) -> tuple[int, ...]:
        """No unknowns."""
        return ()

    @property
    def text(self) -> None:
        """No physics."""

    def limits(self) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """A latent has no bounds."""
        infinite = jnp.full(self.size, np.inf, self.dtype)
        return -infinite, infinite

    def extend(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        """The latent: nothing is lifted."""
        return z

    def centred(self, z_ext: Float[Array, "*steps n"]) -> Float[Array, "*steps n"]:
        """The latent: it has no mean to subtract."""
        return z_ext

    def features(self, z_ext: Array, u: Array, gaps: Array) -> Features:
        """Outputs of the stack at all time steps from the first on."""
        start = self.network.start(*gaps.shape[1:])
        outputs, states = self.network(self._joined(z_ext, u), gaps, start)
        return Features(outputs, outputs[-1], jnp.moveaxis(states, 0, -2))

    def discrete(self, gaps: Float[Array, "*shape"]) -> Discrete:
        """The discretised stack."""
        return self.network.discrete(gaps)

    def start(self) -> Float[Array, "depth states"]:
        """The states of the S5 stack before the first time step."""
        return self.network.start()

    def feature_step(
        self, z_ext: Array, u: Array, discrete: Discrete | None, carry: Array
    ) -> tuple[Float[Array, " width"], Float[Array, "depth states"]]:
        """The same for one time step."""
        assert discrete is not None
        return self.network.step(self._joined(z_ext, u), discrete, carry)

    def theta(self, features: Array, series_terms: Array) -> Float[Array, " width"]:
        """The outputs of the stack as they are."""
        return features

    def advance(self, z_ext: Array, theta: Array, drive: Drive) -> Float[Array, " n"]:
        """The latent after a gap."""
        u_next = self.table.scale_controls(drive.u_next)
        inputs = jnp.concatenate([theta, u_next, drive.gap[None]])
        return z_ext + self.outputs(inputs)

    @property
    def holds_previous(self) -> Bool[np.ndarray, " controls"]:
        """All of them."""
        return np.ones(len(self.table.controls), bool)

    def observe(self, z_ext: Array, u: Array) -> Float[Array, " channels"]:
        """Zeros: a latent without physics gives no channel by itself."""
        return jnp.zeros(len(self.table.channels), z_ext.dtype)

    def _joined(self, z_ext: Array, u: Array) -> Array:
        return self.inputs(jnp.concatenate([z_ext, self.table.scale_controls(u)], axis=-1))
