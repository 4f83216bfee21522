"""ContiFormer (Chen et al., 2023): a transformer in continuous time.

Rows are embedded, and attended to at any time: keys and values move between the rows by learned
differential equations. Attention costs as much as there are pairs of rows and times; times are
asked in chunks, which bounds the memory, and of many rows at most `keys`, evenly chosen, are
attended to. Nothing is drawn: all certainty comes from calibration. Inside a window it sees later
rows too, so that its values there are no predictions.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray
from pydantic import Field, model_validator

from physsm.models._encode_decode.config import EncodeDecodeConfig
from physsm.models._encode_decode.decoder import TrajectoryDecoder
from physsm.models._encode_decode.encoder import StepReader, is_step
from physsm.models._encode_decode.fitted import FittedTrajectory
from physsm.models._encode_decode.forecaster import TrajectoryForecaster
from physsm.models._encode_decode.network import AbstractEncodeDecode
from physsm.models._encode_decode.scales import TrajectoryScales
from physsm.models._encode_decode.values import Timeline, Trajectory, Window, elapsed
from physsm.models._network.config import Perceptron
from physsm.models._network.observations import Observations
from physsm.nn.attention import ContinuousAttention, Memory, Tokens
from physsm.nn.interpolation import interpolate_linear
from physsm.nn.layers import LayerNorm
from physsm.nn.mlp import MLP
from physsm.physics.system import System


class Config(EncodeDecodeConfig):
    """Settings beside those of all models with a path.

    - `width`, `heads`, `depth`: of the transformer; `feed_forward`: the network of each layer.
    - `keys`: the most rows that are attended to.
    - `chunk`: times that are asked at once.
    - `flow_steps`: steps in which keys and values are followed from one such row to the next.
    """

    width: int = Field(default=32, ge=2, le=2048)
    heads: int = Field(default=4, ge=1, le=64)
    depth: int = Field(default=1, ge=1, le=16)
    feed_forward: Perceptron = Perceptron(width=64, layers=1)
    keys: int = Field(default=32, ge=2, le=100_000)
    chunk: int = Field(default=256, ge=1, le=100_000)
    flow_steps: int = Field(default=1, ge=1, le=100)

    @model_validator(mode="after")
    def _heads_fit(self) -> Config:
        if self.width % self.heads or self.width % 2:
            raise ValueError("the width must be even, and a multiple of the heads")
        return self


class Layer(eqx.Module):
    """Attention and a perceptron, each after a norm and beside a skip."""

    attention: ContinuousAttention
    feed_forward: MLP
    norms: tuple[LayerNorm, LayerNorm]

    def __init__(self, config: Config, rng: np.random.Generator):
        shape, width = config.feed_forward, config.width
        self.attention = ContinuousAttention(width, config.heads, config.flow_steps, rng)
        self.feed_forward = MLP(width, shape.width, shape.layers, width, rng, activation="gelu")
        self.norms = (LayerNorm(width), LayerNorm(width))

    def read(self, rows: Tokens, most: int) -> tuple[Tokens, Memory]:
        """The normed rows, and what is attended to: at most so many of them."""
        rows = rows._replace(x=self.norms[0](rows.x))
        chosen, is_new = evenly(rows.valid, most)
        keys = Tokens(rows.times[chosen], rows.x[chosen], rows.valid[chosen] & is_new)
        return rows, self.attention.read(rows, keys)

    def __call__(
        self, times: Float[Array, " times"], rows: Tokens, memory: Memory
    ) -> Float[Array, "times width"]:
        """The layer's outputs at times, of what it has read."""
        x = interpolate_linear(times, rows.times, rows.x) + self.attention(times, memory)
        return x + self.feed_forward(self.norms[1](x))


class Context(NamedTuple):
    """What a window holds: its embedded rows, series first."""

    times: Float[Array, "*batch rows"]
    x: Float[Array, "*batch rows width"]
    valid: Any


class ContiFormerNetwork(AbstractEncodeDecode):
    """A path of what is attended to."""

    reader: StepReader
    layers: tuple[Layer, ...]

    def infer(self, rows: Observations) -> Context:
        """The embedded rows after all layers but the last, which is asked for any time."""
        times = elapsed(rows.gaps)
        embedded = self.reader(rows)
        context = Context(times.T, jnp.swapaxes(embedded, 0, 1), (is_step(rows) > 0).T)

        def one(context: Context) -> Context:
            for layer in self.layers[:-1]:
                x = self._layer(layer, context.times, context)
                context = context._replace(x=x)
            return context

        return jax.vmap(one)(context)

    def draw(self, inferred: Context, key: PRNGKeyArray | None) -> Context:
        """Nothing is uncertain."""
        return inferred

    def divergence(self, window: Window, inferred: Any, trajectory: Trajectory) -> Float[Array, ""]:
        """Nothing is uncertain."""
        return jnp.zeros((), self.dtype)

    def beta(self, progress: Array) -> Array:
        """There is no divergence."""
        return jnp.zeros_like(progress)

    @property
    def samples(self) -> int:
        """Nothing is uncertain."""
        return 0

    def trajectory(
        self, start: Context, times: Float[Array, " times"], timeline: Timeline
    ) -> Trajectory:
        """The last layer at the times."""
        z = self._layer(self.layers[-1], times, start)
        return Trajectory(z, jnp.isfinite(z).all(-1))

    def _layer(self, layer: Layer, times: Array, context: Context) -> Array:
        """A layer at times, in chunks of which each is computed again for its gradient."""
        x = context.x + self._clock(context.times)
        pace = jnp.asarray(self.scales.pace, times.dtype)
        read = layer.read(Tokens(context.times * pace, x, context.valid), self.config.keys)

        def one_chunk(times: Array) -> Array:
            return layer(times * pace, *read) + self._clock(times)

        chunk = min(self.config.chunk, len(times))
        padded = jnp.concatenate([times, jnp.broadcast_to(times[-1], (-len(times) % chunk,))])
        chunks = padded.reshape(-1, chunk)
        if len(chunks) == 1:  # a loop would run on one core
            return one_chunk(chunks[0])[: len(times)]
        found = jax.lax.map(jax.checkpoint(one_chunk), chunks)
        return found.reshape(len(padded), -1)[: len(times)]

    def _clock(self, times: Float[Array, " times"]) -> Float[Array, "times width"]:
        """Sines and cosines of the time, from a window's length to a hundredth of it."""
        pairs = self.config.width // 2
        rates = np.geomspace(1.0, 100.0, pairs) * 2 * np.pi / self.scales.span
        angle = times[:, None] * jnp.asarray(rates, times.dtype)[None]
        return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1)


def evenly(
    valid: Bool[Array, " rows"], most: int
) -> tuple[Int[Array, " chosen"], Bool[Array, " chosen"]]:
    """At most so many of the valid rows, which are the last ones, evenly chosen, the first and the
    last of them always; and which were not chosen before, where there are fewer.
    """
    rows, chosen = len(valid), min(len(valid), most)
    number = valid.sum(dtype=jnp.int32)
    # In whole numbers: every so many of them, rounded.
    place = jnp.arange(chosen, dtype=jnp.int32)
    share = (2 * place * (number - 1) + chosen - 1) // max(2 * (chosen - 1), 1)
    index = jnp.maximum(rows - number + share, 0)
    return index, jnp.concatenate([jnp.ones(1, bool), jnp.diff(index) > 0])


def build(
    system: System | None, scales: TrajectoryScales, config: Config, seed: int
) -> ContiFormerNetwork:
    """A network before its training."""
    rng = np.random.default_rng(seed)
    return ContiFormerNetwork(
        decoder=TrajectoryDecoder(scales, config, config.width, rng),
        scales=scales,
        config=config,
        reader=StepReader(scales, config.encoder_perceptron, config.width, rng),
        layers=tuple(Layer(config, rng) for _ in range(config.depth)),
    )


@final
class FittedContiFormer(FittedTrajectory):
    """A fitted ContiFormer."""

    name: ClassVar[str] = "contiformer"
    Config = Config
    build = staticmethod(build)


@final
class ContiFormer(TrajectoryForecaster):
    """A transformer in continuous time."""

    Fitted = FittedContiFormer

    @classmethod
    def test_settings(cls) -> dict[str, Any]:
        """Small and quickly trained."""
        shared = super().test_settings()
        uncertain = ("encoder", "latent", "samples")
        own = {"width": 8, "heads": 2, "keys": 8, "chunk": 8}
        return {**{name: shared[name] for name in shared if name not in uncertain}, **own}


MODEL = ContiFormer
