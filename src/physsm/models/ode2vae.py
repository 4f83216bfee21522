"""ODE²VAE (Yildiz, Heinonen and Lähdesmäki, 2019): a second-order latent trajectory with density.

An encoder that reads the window backwards infers the initial positions s and velocities v. The
trajectory solves s' = v and v' = f(s, v), where f is a network with uncertain weights, drawn once
for each trajectory. Its log density is integrated too: d log q/dt = -tr(df/dv). Channels are
decoded from positions alone.

The divergence has three terms: log q(z) - log N(z; 0, I) and log q(z) - log q_enc(z), both means
over time steps, and the divergence of the weights. q_enc is the distribution that the encoder
infers at each time step by itself. The initial log density is that of the draw, with its
normalising factor 1/std.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from pydantic import Field

from physsm.models._encode_decode.config import ODEConfig
from physsm.models._encode_decode.decoder import TrajectoryDecoder
from physsm.models._encode_decode.encoder import INITIAL_RAW_STD, ReversedEncoder
from physsm.models._encode_decode.fitted import FittedTrajectory
from physsm.models._encode_decode.forecaster import TrajectoryForecaster
from physsm.models._encode_decode.network import AbstractEncodeDecode
from physsm.models._encode_decode.scales import TrajectoryScales
from physsm.models._encode_decode.values import Timeline, Trajectory, Window
from physsm.models._network.config import Perceptron
from physsm.models._network.observations import Observations, is_step
from physsm.nn.gaussian import Gaussian, gaussian, kl, sample
from physsm.nn.layers import parameter
from physsm.nn.mlp import MLP, Dense
from physsm.nn.ode import solve_ode
from physsm.physics.system import System

_INITIAL_LOG_STD = -3.0  # of the weights before training


class Config(ODEConfig):
    """Settings beside those of a latent ODE.

    - `latent`: the number of positions; there are as many velocities.
    - `instant`: weight, beside `beta`, of the divergence from the encoder at each time step.
    """

    drift: Perceptron = Perceptron(width=50, layers=2)
    instant: float = Field(default=1.0, ge=0)


class Inferred(NamedTuple):
    """Positions and velocities at each time step; `start` are those of the first step."""

    start: Gaussian
    steps: Gaussian


class Start(NamedTuple):
    """A draw: the initial state, its log density, and the weights of the drift."""

    z: Float[Array, "*batch twice"]
    log_density: Float[Array, "*batch"]
    drift: MLP


def log_density(z: Float[Array, "*shape d"], of: Gaussian) -> Float[Array, "*shape"]:
    """Log density of independent Gaussians, with the normalising factor."""
    terms = ((z - of.mean) / of.std) ** 2 / 2 + jnp.log(of.std) + np.log(2 * np.pi) / 2
    return -terms.sum(-1)


class SecondOrderNetwork(AbstractEncodeDecode):
    """A second-order trajectory."""

    encoder: ReversedEncoder
    head: Dense
    drift: MLP
    drift_log_std: MLP

    @property
    def positions(self) -> int:
        """The number of positions."""
        return self.config.latent

    def infer(self, rows: Observations) -> Inferred:
        """Distributions at each time step, from that step and all after it."""
        mean, raw = jnp.split(self.head(self.encoder(rows)), 2, axis=-1)
        at_steps = gaussian(mean, raw + INITIAL_RAW_STD)
        start = jax.tree.map(lambda leaf: leaf[0], at_steps)
        return Inferred(start, jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), at_steps))

    def weights(self, key: PRNGKeyArray | None) -> MLP:
        """A draw of the drift's weights; their means if there is no key."""
        if key is None:
            return self.drift
        leaves, structure = jax.tree.flatten(self.drift)
        keys = jr.split(key, len(leaves))
        stds = jax.tree.leaves(self.drift_log_std)
        drawn = [
            sample(Gaussian(mean, jnp.exp(log_std)), one)
            for mean, log_std, one in zip(leaves, stds, keys, strict=True)
        ]
        return structure.unflatten(drawn)

    def draw(self, inferred: Inferred, key: PRNGKeyArray | None) -> Start:
        """A draw of start and weights; their means if there is no key."""
        if key is None:
            z, drift = inferred.start.mean, self.drift
        else:
            for_start, for_weights = jr.split(key)
            z, drift = sample(inferred.start, for_start), self.weights(for_weights)
        return Start(z, log_density(z, inferred.start), drift)

    def trajectory(
        self, start: Start, times: Float[Array, " times"], timeline: Timeline
    ) -> Trajectory:
        """States and their log density."""
        q, pace = self.positions, jnp.asarray(self.scales.pace, self.dtype)

        def rate(_: Array, state: Array) -> Array:
            s, v = state[:q], state[q : 2 * q]

            def acceleration(v: Array) -> Array:
                return start.drift(jnp.concatenate([s, v]))

            trace = jnp.trace(jax.jacfwd(acceleration)(v))
            return pace * jnp.concatenate([v, acceleration(v), -trace[None]])

        whole = jnp.concatenate([start.z, start.log_density[None]])
        solution = solve_ode(rate, whole, times, self.config.solver, self.scales.node)
        states, density = solution.states[:, : 2 * q], solution.states[:, 2 * q]
        return Trajectory(states, solution.is_reached, density)

    def decode(
        self, z: Float[Array, "*steps d"], controls: Float[Array, "*steps controls"]
    ) -> Float[Array, "*steps channels"]:
        """Scaled channels from positions alone."""
        return self.decoder(z[..., : self.positions], controls)

    def divergence(self, window: Window, inferred: Any, trajectory: Trajectory) -> Float[Array, ""]:
        """Divergence of trajectory and weights, per dimension, as for other models."""
        assert trajectory.log_density is not None
        dimensions = 2 * self.positions
        standard = Gaussian(jnp.zeros_like(trajectory.z), jnp.ones_like(trajectory.z))
        is_measured = (window.weight.sum(-1) > 0).astype(trajectory.z.dtype)
        prior = _mean(trajectory.log_density - log_density(trajectory.z, standard), is_measured)
        context = len(window.rows.gaps)
        at_steps = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), inferred.steps)
        instant = trajectory.log_density[:context] - log_density(trajectory.z[:context], at_steps)
        encoder = _mean(instant, is_step(window.rows))
        return (prior + self.config.instant * encoder) / dimensions + self.weight_divergence()

    def weight_divergence(self) -> Float[Array, ""]:
        """Mean divergence of the weights from N(0, 1): the paper's weight q / number, per q."""
        pairs = zip(jax.tree.leaves(self.drift), jax.tree.leaves(self.drift_log_std), strict=True)
        divergences = [
            kl(Gaussian(mean, jnp.exp(log_std)), Gaussian(mean * 0, mean * 0 + 1)).reshape(-1)
            for mean, log_std in pairs
        ]
        return jnp.concatenate(divergences).mean()


def _mean(values: Array, weight: Array) -> Array:
    return (values * weight).sum() / jnp.maximum(weight.sum(), 1)


def build(
    system: System | None, scales: TrajectoryScales, config: Config, seed: int
) -> SecondOrderNetwork:
    """The network before training."""
    rng, q = np.random.default_rng(seed), config.latent
    shape = config.drift
    drift = MLP(2 * q, shape.width, shape.layers, q, rng, activation="tanh")
    return SecondOrderNetwork(
        decoder=TrajectoryDecoder(scales, config, q, rng),
        scales=scales,
        config=config,
        encoder=ReversedEncoder(scales, config.encoder_perceptron, config.encoder, rng),
        head=Dense(config.encoder.width, 4 * q, rng),
        drift=drift,
        drift_log_std=eqx.tree_at(
            jax.tree.leaves,
            drift,
            [
                parameter(_INITIAL_LOG_STD + 0.1 * rng.standard_normal(leaf.shape))
                for leaf in jax.tree.leaves(drift)
            ],
        ),
    )


@final
class FittedODE2VAE(FittedTrajectory):
    """A fitted ODE²VAE."""

    name: ClassVar[str] = "ode2vae"
    Config = Config
    build = staticmethod(build)


@final
class ODE2VAE(TrajectoryForecaster):
    """A second-order latent trajectory with uncertain dynamics."""

    Fitted = FittedODE2VAE


MODEL = ODE2VAE
