"""Symplectic DVAE (after Bacsa, Lai, Liu, Todd and Chatzi, 2023): latents that conserve energy.

An encoder that reads the window backwards infers the initial positions and momenta (q, p). They
move by Hamilton's equations with H = p²/2m + V(q), where V is a network and m are learned masses,
in leapfrog steps. These are reversible and conserve the energy up to a bounded error for any
length of the trajectory: the model has no damping and no growth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, final

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from pydantic import Field

from physsm.models._encode_decode.config import LatentConfig
from physsm.models._encode_decode.decoder import TrajectoryDecoder
from physsm.models._encode_decode.encoder import ReversedEncoder
from physsm.models._encode_decode.fitted import FittedTrajectory
from physsm.models._encode_decode.forecaster import TrajectoryForecaster
from physsm.models._encode_decode.latent_ode import start_posterior
from physsm.models._encode_decode.network import AbstractEncodeDecode
from physsm.models._encode_decode.scales import TrajectoryScales
from physsm.models._encode_decode.values import Timeline, Trajectory
from physsm.models._network.config import Perceptron
from physsm.models._network.observations import Observations
from physsm.nn.gaussian import Gaussian
from physsm.nn.layers import parameter
from physsm.nn.mlp import MLP, Dense
from physsm.nn.recompute import lean_scan
from physsm.physics.system import System


class Config(LatentConfig):
    """Settings beside those of all encode-decode models with latents.

    - `latent`: positions and momenta together, so it is even.
    - `energy`: the network of the potential energy.
    - `substeps`: leapfrog steps from one time step to the next.
    """

    latent: int = Field(default=8, ge=2, le=2048, multiple_of=2)
    energy: Perceptron = Perceptron(width=64, layers=2)
    substeps: int = Field(default=1, ge=1, le=1000)


Force = Callable[[Float[Array, " n"]], Float[Array, " n"]]


def leapfrog(
    q: Float[Array, " n"],
    p: Float[Array, " n"],
    force: Force,
    inverse_mass: Float[Array, " n"],
    time: Float[Array, ""],
    steps: int,
) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
    """Positions and momenta after a time, in equal leapfrog steps."""
    step = time / steps
    for _ in range(steps):
        p = p + step / 2 * force(q)
        q = q + step * inverse_mass * p
        p = p + step / 2 * force(q)
    return q, p


class SymplecticNetwork(AbstractEncodeDecode):
    """A trajectory of constant energy."""

    encoder: ReversedEncoder
    head: Dense
    potential: MLP
    log_mass: Float[Array, " n"]

    def infer(self, rows: Observations) -> Gaussian:
        """Positions and momenta at the first time step of each window."""
        return start_posterior(self.head, self.encoder(rows))

    def energy(self, z: Float[Array, " latent"]) -> Float[Array, ""]:
        """Kinetic plus potential energy."""
        q, p = jnp.split(z, 2)
        return (p**2 * jnp.exp(-self.log_mass)).sum() / 2 + self.potential(q)[0]

    def advance(self, z: Float[Array, " latent"], gap: Float[Array, ""]) -> Float[Array, " latent"]:
        """The state a gap later."""
        q, p = jnp.split(z, 2)

        def force(q: Array) -> Array:
            return -jax.grad(lambda q: self.potential(q)[0])(q)

        time = gap * jnp.asarray(self.scales.pace, gap.dtype)
        moved = leapfrog(q, p, force, jnp.exp(-self.log_mass), time, self.config.substeps)
        return jnp.concatenate(moved)

    def trajectory(
        self, start: Float[Array, " latent"], times: Float[Array, " times"], timeline: Timeline
    ) -> Trajectory:
        """States from time step to time step, and from the last step before each time to it."""

        def step(z: Array, gap: Array) -> tuple[Array, Array]:
            after = self.advance(z, gap)
            return after, after

        gaps = jnp.diff(timeline.times, prepend=timeline.times[:1])
        _, at_steps = lean_scan(step, start, gaps)
        last = jnp.clip(jnp.searchsorted(timeline.times, times, side="right") - 1, 0)
        z = jax.vmap(self.advance)(at_steps[last], times - timeline.times[last])
        return Trajectory(z, jnp.isfinite(z).all(-1))


def build(
    system: System | None, scales: TrajectoryScales, config: Config, seed: int
) -> SymplecticNetwork:
    """The network before training."""
    rng, n = np.random.default_rng(seed), config.latent // 2
    energy = config.energy
    return SymplecticNetwork(
        decoder=TrajectoryDecoder(scales, config, config.latent, rng),
        scales=scales,
        config=config,
        encoder=ReversedEncoder(scales, config.encoder_perceptron, config.encoder, rng),
        head=Dense(config.encoder.width, 2 * config.latent, rng),
        potential=MLP(n, energy.width, energy.layers, 1, rng, activation="softplus"),
        log_mass=parameter(np.zeros(n)),
    )


@final
class FittedSDVAE(FittedTrajectory):
    """A fitted symplectic DVAE."""

    name: ClassVar[str] = "sdvae"
    Config = Config
    build = staticmethod(build)


@final
class SDVAE(TrajectoryForecaster):
    """A latent trajectory that conserves energy."""

    Fitted = FittedSDVAE


MODEL = SDVAE
