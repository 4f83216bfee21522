"""ODE²VAE (Yildiz, Heinonen and Lähdesmäki, 2019): a second-order latent path with its density.

Positions s and velocities v start from what is inferred of the window, read backwards; s' = v and
v' = f(s, v), where f is a network with uncertain weights, drawn once for each path. Along with the
path goes the density of being there: d log q/dt = -tr(df/dv). Positions alone are decoded.

The objective holds, as means over rows, log q(z) - log N(z; 0, I), and log q(z) - log q_enc(z), the
distance from what the encoder says of each row by itself; and the divergence of the weights. The
density at the start has the factor 1/std of the draw, which a sum over rows would miss otherwise.
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

_LOG_STD = -3.0  # of the weights before training


class Config(ODEConfig):
    """Settings beside those of a latent ODE.

    - `latent`: the number of positions; there are as many velocities.
    - `instant`: weight, beside `beta`, of the distance from what the encoder says of each row.
    """

    drift: Perceptron = Perceptron(width=50, layers=2)
    instant: float = Field(default=1.0, ge=0)


class Inferred(NamedTuple):
    """Positions and velocities at each row; of the series' first row, the start of its path."""

    start: Gaussian
    rows: Gaussian


class Start(NamedTuple):
    """A draw: the state, the log density of having drawn it, and the weights of the drift."""

    z: Float[Array, "*batch twice"]
    log_density: Float[Array, "*batch"]
    drift: MLP


def log_density(z: Float[Array, "*shape d"], of: Gaussian) -> Float[Array, "*shape"]:
    """Of independent Gaussians, the normalising factor included."""
    terms = ((z - of.mean) / of.std) ** 2 / 2 + jnp.log(of.std) + np.log(2 * np.pi) / 2
    return -terms.sum(-1)


class SecondOrderNetwork(AbstractEncodeDecode):
    """A second-order path."""

    encoder: ReversedEncoder
    head: Dense
    drift: MLP
    drift_log_std: MLP

    @property
    def positions(self) -> int:
        """The number of positions."""
        return self.config.latent

    def infer(self, rows: Observations) -> Inferred:
        """By one head, at each row: of that row and all after it."""
        mean, raw = jnp.split(self.head(self.encoder(rows)), 2, axis=-1)
        at_rows = gaussian(mean, raw + INITIAL_RAW_STD)
        start = jax.tree.map(lambda leaf: leaf[0], at_rows)
        return Inferred(start, jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), at_rows))

    def weights(self, key: PRNGKeyArray | None) -> MLP:
        """A draw of the drift; its mean if there is no key."""
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
        """A start and weights."""
        if key is None:
            z, drift = inferred.start.mean, self.drift
        else:
            for_start, for_weights = jr.split(key)
            z, drift = sample(inferred.start, for_start), self.weights(for_weights)
        return Start(z, log_density(z, inferred.start), drift)

    def trajectory(
        self, start: Start, times: Float[Array, " times"], timeline: Timeline
    ) -> Trajectory:
        """States and the log density of being there."""
        q, pace = self.positions, jnp.asarray(self.scales.pace, self.dtype)

        def rate(_: Array, state: Array) -> Array:
            s, v = state[:q], state[q : 2 * q]

            def acceleration(v: Array) -> Array:
                return start.drift(jnp.concatenate([s, v]))

            trace = jnp.trace(jax.jacfwd(acceleration)(v))
            return pace * jnp.concatenate([v, acceleration(v), -trace[None]])

        whole = jnp.concatenate([start.z, start.log_density[None]])
        found = solve_ode(rate, whole, times, self.config.solver, self.scales.node)
        states, density = found.states[:, : 2 * q], found.states[:, 2 * q]
        return Trajectory(states, found.is_reached, density)

    def decode(
        self, z: Float[Array, "*steps d"], controls: Float[Array, "*steps controls"]
    ) -> Float[Array, "*steps channels"]:
        """From positions alone."""
        return self.decoder(z[..., : self.positions], controls)

    def divergence(self, window: Window, inferred: Any, trajectory: Trajectory) -> Float[Array, ""]:
        """Of path and weights; per dimension, as for other models."""
        assert trajectory.log_density is not None
        dimensions = 2 * self.positions
        standard = Gaussian(jnp.zeros_like(trajectory.z), jnp.ones_like(trajectory.z))
        shown = (window.weight.sum(-1) > 0).astype(trajectory.z.dtype)
        prior = _mean(trajectory.log_density - log_density(trajectory.z, standard), shown)
        context = len(window.rows.gaps)
        by_row = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), inferred.rows)
        instant = trajectory.log_density[:context] - log_density(trajectory.z[:context], by_row)
        apart = _mean(instant, is_step(window.rows))
        return (prior + self.config.instant * apart) / dimensions + self.weight_divergence()

    def weight_divergence(self) -> Float[Array, ""]:
        """Of the weights from N(0, 1), a mean over them: the paper's weight q / number, per q."""
        pairs = zip(jax.tree.leaves(self.drift), jax.tree.leaves(self.drift_log_std), strict=True)
        terms = [
            kl(Gaussian(mean, jnp.exp(log_std)), Gaussian(mean * 0, mean * 0 + 1)).reshape(-1)
            for mean, log_std in pairs
        ]
        return jnp.concatenate(terms).mean()


def _mean(values: Array, weight: Array) -> Array:
    return (values * weight).sum() / jnp.maximum(weight.sum(), 1)


def build(
    system: System | None, scales: TrajectoryScales, config: Config, seed: int
) -> SecondOrderNetwork:
    """A network before its training."""
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
                parameter(_LOG_STD + 0.1 * rng.standard_normal(leaf.shape))
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
    """A second-order latent path with uncertain dynamics."""

    Fitted = FittedODE2VAE


MODEL = ODE2VAE
