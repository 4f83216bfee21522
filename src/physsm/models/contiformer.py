"""ContiFormer (Chen et al., 2023): a transformer in continuous time.

Time steps are embedded, and can be attended to at any time: keys and values change between time
steps by learned differential equations. The cost of attention is the number of pairs of time steps
and query times. Query times are computed in chunks, which bounds the memory, and at most `keys`
evenly spaced time steps are attended to. There are no latents to draw: intervals come from the
calibration alone. Values inside a window also use later time steps, so they are not predictions.
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
    """Settings beside those of all encode-decode models.

    - `width`, `heads`, `depth`: of the transformer; `feed_forward`: the network of each layer.
    - `keys`: the most time steps that are attended to.
    - `chunk`: query times of one computation.
    - `flow_steps`: solver steps of keys and values from one such time step to the next.
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
    """Attention and a perceptron, each after a norm and with a skip connection."""

    attention: ContinuousAttention
    feed_forward: MLP
    norms: tuple[LayerNorm, LayerNorm]

    def __init__(self, config: Config, rng: np.random.Generator):
        shape, width = config.feed_forward, config.width
        self.attention = ContinuousAttention(width, config.heads, config.flow_steps, rng)
        self.feed_forward = MLP(width, shape.width, shape.layers, width, rng, activation="gelu")
        self.norms = (LayerNorm(width), LayerNorm(width))

    def read(self, tokens: Tokens, most: int) -> tuple[Tokens, Memory]:
        """The normed tokens, and the keys and values of at most `most` of them."""
        tokens = tokens._replace(x=self.norms[0](tokens.x))
        chosen, is_new = evenly(tokens.valid, most)
        keys = Tokens(tokens.times[chosen], tokens.x[chosen], tokens.valid[chosen] & is_new)
        return tokens, self.attention.read(tokens, keys)

    def __call__(
        self, times: Float[Array, " times"], tokens: Tokens, memory: Memory
    ) -> Float[Array, "times width"]:
        """Outputs at query times, from the results of `read`."""
        x = interpolate_linear(times, tokens.times, tokens.x) + self.attention(times, memory)
        return x + self.feed_forward(self.norms[1](x))


class Context(NamedTuple):
    """Embedded time steps of a window, series first."""

    times: Float[Array, "*batch steps"]
    x: Float[Array, "*batch steps width"]
    valid: Any


class ContiFormerNetwork(AbstractEncodeDecode):
    """A trajectory of attention outputs."""

    reader: StepReader
    layers: tuple[Layer, ...]

    def infer(self, rows: Observations) -> Context:
        """The embedded time steps after all layers but the last, which `trajectory` computes."""
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
        """The context itself: nothing is uncertain."""
        return inferred

    def divergence(self, window: Window, inferred: Any, trajectory: Trajectory) -> Float[Array, ""]:
        """Zero: nothing is uncertain."""
        return jnp.zeros((), self.dtype)

    def beta(self, progress: Array) -> Array:
        """Zero: there is no divergence."""
        return jnp.zeros_like(progress)

    @property
    def samples(self) -> int:
        """Zero: nothing is uncertain."""
        return 0

    def trajectory(
        self, start: Context, times: Float[Array, " times"], timeline: Timeline
    ) -> Trajectory:
        """Outputs of the last layer at the times."""
        z = self._layer(self.layers[-1], times, start)
        return Trajectory(z, jnp.isfinite(z).all(-1))

    def _layer(self, layer: Layer, times: Array, context: Context) -> Array:
        """A layer at times, in chunks. Each chunk is recomputed for its gradient."""
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
        outputs = jax.lax.map(jax.checkpoint(one_chunk), chunks)
        return outputs.reshape(len(padded), -1)[: len(times)]

    def _clock(self, times: Float[Array, " times"]) -> Float[Array, "times width"]:
        """Sines and cosines of the time, with periods of a window's length to a hundredth of it."""
        pairs = self.config.width // 2
        rates = jnp.asarray(np.geomspace(1.0, 100.0, pairs) * 2 * np.pi, times.dtype)
        angle = (times / jnp.asarray(self.scales.span, times.dtype))[:, None] * rates[None]
        return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=-1)


def evenly(
    valid: Bool[Array, " steps"], most: int
) -> tuple[Int[Array, " chosen"], Bool[Array, " chosen"]]:
    """At most `most` evenly spaced valid time steps, the first and the last always among them; and
    which are no repetitions.

    Valid time steps are the last ones. Where there are fewer than `most`, some are repeated.
    """
    steps, chosen = len(valid), min(len(valid), most)
    number = valid.sum(dtype=jnp.int32)
    # Evenly spaced ranks, rounded in integer arithmetic.
    place = jnp.arange(chosen, dtype=jnp.int32)
    rank = (2 * place * (number - 1) + chosen - 1) // max(2 * (chosen - 1), 1)
    index = jnp.maximum(steps - number + rank, 0)
    return index, jnp.concatenate([jnp.ones(1, bool), jnp.diff(index) > 0])


def build(
    system: System | None, scales: TrajectoryScales, config: Config, seed: int
) -> ContiFormerNetwork:
    """The network before training."""
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
        """Settings of a small network that trains in seconds."""
        shared = super().test_settings()
        uncertain = ("encoder", "latent", "samples")
        own = {"width": 8, "heads": 2, "keys": 8, "chunk": 8}
        return {**{name: shared[name] for name in shared if name not in uncertain}, **own}


MODEL = ContiFormer
