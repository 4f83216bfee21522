"""S5: a stack of diagonal state-space layers for irregularly sampled sequences.

Each module takes sequences, time first, then any batch axes. A gap of zero leaves the states
unchanged, so padding can be put before a sequence.
"""

from __future__ import annotations

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.nn.discretise import Discrete, Discretisation
from physsm.nn.layers import linear, normal, normalise, on_last_axis, parameter
from physsm.nn.parameter_groups import UNDECAYED
from physsm.nn.recompute import after
from physsm.nn.recurrence import advance, discretise, recall, recur
from physsm.nn.s5_init import diagonalise

Skip = Literal["raw", "normalised"]

_LARGEST_RATE = -1e-4  # upper bound of real parts: a rollout must not grow without input


class S5(eqx.Module):
    """x' = Λx + Bu, y = 2 Re(Cx) + Du, with Λ from HiPPO and one learned time step per state.

    States come in conjugate pairs, of which one of each is stored: `states` = p2 = 2p real numbers.
    """

    rate: Float[Array, " p2"] = eqx.field(metadata=UNDECAYED)
    log_step: Float[Array, " p"] = eqx.field(metadata=UNDECAYED)
    B: Float[Array, "p2 width"]
    C: Float[Array, "width p2"]
    D: Float[Array, " width"] = eqx.field(metadata=UNDECAYED)
    discretisation: Discretisation = eqx.field(static=True)

    def __init__(
        self, width: int, states: int, discretisation: Discretisation, rng: np.random.Generator
    ):
        modes = diagonalise(states)
        self.rate = parameter(np.concatenate([modes.rate_re, modes.rate_im]))
        to_modes = np.concatenate([modes.vectors_re.T, -modes.vectors_im.T])
        self.B = parameter(to_modes @ normal(rng, (states, width)))
        from_modes = np.concatenate([modes.vectors_re, -modes.vectors_im], axis=1)
        self.C = parameter(2 * normal(rng, (width, states)) @ from_modes)
        self.D = parameter(rng.standard_normal(width))
        self.log_step = parameter(rng.uniform(np.log(1e-3), np.log(1e-1), states // 2))
        self.discretisation = discretisation

    def __call__(
        self,
        u: Float[Array, "steps *batch width"],
        gaps: Float[Array, " steps *batch"],
        state: Float[Array, "*batch p2"],
        states: Float[Array, "steps *batch p2"] | None = None,
    ) -> tuple[Float[Array, "steps *batch width"], Float[Array, "steps *batch p2"]]:
        """Outputs for a sequence, and all states. `gaps[i]` is the time before step i.

        Give `states` where they are known and only derivatives are needed.
        """
        arguments = (self._stable_rate(), self.log_step, gaps, linear(self.B, u), state)
        reached: Array
        if states is None:
            reached = recur(self.discretisation, *arguments)  # type: ignore[assignment]
        else:
            reached = recall(self.discretisation, *arguments, states)  # type: ignore[assignment]
        return self._outputs(reached, u), reached

    def discrete(self, gaps: Float[Array, "*shape"]) -> Discrete:
        """Coefficients of the steps over the given gaps, computed at once before a loop."""
        return discretise(self.discretisation, self._stable_rate(), self.log_step, gaps)

    def step(
        self,
        u: Float[Array, "*batch width"],
        discrete: Discrete,
        state: Float[Array, "*batch p2"],
    ) -> tuple[Float[Array, "*batch width"], Float[Array, "*batch p2"]]:
        """Output and state of one step."""
        state = advance(discrete, linear(self.B, u), state)
        return self._outputs(state, u), state

    def _outputs(self, states: Array, u: Array) -> Array:
        return linear(self.C, states) + on_last_axis(self.D, u) * u

    def _stable_rate(self) -> Float[Array, " p2"]:
        half = self.rate.shape[0] // 2
        return jnp.concatenate([jnp.minimum(self.rate[:half], _LARGEST_RATE), self.rate[half:]])


class S5Block(eqx.Module):
    """An S5 layer and a gated linear unit, each with a layer norm before it and a skip connection.

    The skip connection carries the raw input (`raw`), or the normalised one as in the paper's code
    (`normalised`), which loses the amplitude of the signal in every block.
    """

    norms: Float[Array, "norm gain_and_shift width"] = eqx.field(metadata=UNDECAYED)
    s5: S5
    W_in: Float[Array, "twice width"]
    W_out: Float[Array, "width width"]
    skip: Skip = eqx.field(static=True)

    def __init__(
        self,
        width: int,
        states: int,
        discretisation: Discretisation,
        skip: Skip,
        rng: np.random.Generator,
    ):
        self.norms = parameter(np.stack([np.stack([np.ones(width), np.zeros(width)])] * 2))
        self.s5 = S5(width, states, discretisation, rng)
        self.W_in = parameter(normal(rng, (2 * width, width)))
        self.W_out = parameter(normal(rng, (width, width)))
        self.skip = skip

    def __call__(
        self,
        x: Float[Array, "steps *batch width"],
        gaps: Float[Array, " steps *batch"],
        state: Float[Array, "*batch p2"],
    ) -> tuple[Float[Array, "steps *batch width"], Float[Array, "*batch p2"]]:
        """Outputs for a sequence, and the S5 state after it."""
        return _run_block(self, x, gaps, state)  # type: ignore[return-value]

    def run(
        self, x: Array, gaps: Array, state: Array, states: Array | None = None
    ) -> tuple[Float[Array, "steps *batch width"], Float[Array, "steps *batch p2"]]:
        """Outputs for a sequence, and all S5 states. Give `states` if they are known."""
        normal = normalise(x, self.norms[0])
        y, states = self.s5(normal, gaps, state, states)
        return self._after_s5(x, normal, y), states

    def step(
        self,
        x: Float[Array, "*batch width"],
        discrete: Discrete,
        state: Float[Array, "*batch p2"],
    ) -> tuple[Float[Array, "*batch width"], Float[Array, "*batch p2"]]:
        """The same for one step."""
        normal = normalise(x, self.norms[0])
        y, state = self.s5.step(normal, discrete, state)
        return self._after_s5(x, normal, y), state

    def _after_s5(self, x: Array, normal: Array, y: Array) -> Array:
        mixed = jax.nn.gelu(y) + (x if self.skip == "raw" else normal)
        normal = normalise(mixed, self.norms[1])
        value, gate = jnp.split(linear(self.W_in, normal), 2, axis=-1)
        gated = linear(self.W_out, value * jax.nn.gelu(gate))
        return gated + (mixed if self.skip == "raw" else normal)


@jax.custom_vjp
def _run_block(block: S5Block, x: Array, gaps: Array, state: Array) -> tuple[Array, Array]:
    """A block on a sequence. Of its intermediate results only the states are stored for the
    backward pass. The others are many times as large as the input; recomputing them takes less time
    than writing and reading them. Only reverse-mode derivatives exist: `jax.jvp` raises an error.
    """
    y, states = block.run(x, gaps, state)
    return y, states[-1]


def _run_block_forward(block: S5Block, x: Array, gaps: Array, state: Array):
    y, states = block.run(x, gaps, state)
    return (y, states[-1]), (block, x, gaps, state, states)


def _run_block_backward(saved: tuple[S5Block, Array, Array, Array, Array], cotangents):
    block, x, gaps, state, states = saved
    x, states = after((x, states), cotangents)

    def again(block: S5Block, x: Array, gaps: Array, state: Array) -> tuple[Array, Array]:
        y, known = block.run(x, gaps, state, states)
        return y, known[-1]

    _, pull = jax.vjp(again, block, x, gaps, state)
    return pull(cotangents)


_run_block.defvjp(_run_block_forward, _run_block_backward)


class S5Stack(eqx.Module):
    """A stack of S5 blocks of one shape, as a scan over their stacked parameters.

    On accelerators the scan stays a loop, so that compiling takes as long for eight blocks as for
    one. On a CPU it is unrolled: XLA runs the body of a loop on one core, at half the speed.
    """

    blocks: S5Block  # every array with a leading axis for the block
    depth: int = eqx.field(static=True)
    states: int = eqx.field(static=True)

    def __init__(
        self,
        depth: int,
        width: int,
        states: int,
        rng: np.random.Generator,
        *,
        discretisation: Discretisation = "zoh",
        skip: Skip = "raw",
    ):
        blocks = [S5Block(width, states, discretisation, skip, rng) for _ in range(depth)]
        self.blocks = jax.tree.map(lambda *leaves: parameter(np.stack(leaves)), *blocks)
        self.depth = depth
        self.states = states

    def start(self, *batch: int) -> Float[Array, "depth *batch p2"]:
        """States before the first step."""
        return jnp.zeros((self.depth, *batch, self.states), self.blocks.norms.dtype)

    def __call__(
        self,
        x: Float[Array, "steps *batch width"],
        gaps: Float[Array, " steps *batch"],
        states: Float[Array, "depth *batch p2"],
    ) -> tuple[Float[Array, "steps *batch width"], Float[Array, "depth *batch p2"]]:
        """Outputs for a sequence, and the states after it, from which it can be continued."""

        def one_block(x: Array, inputs: tuple[S5Block, Array]) -> tuple[Array, Array]:
            block, state = inputs
            return block(x, gaps, state)

        unrolled = self.depth if jax.default_backend() == "cpu" else 1
        return jax.lax.scan(one_block, x, (self.blocks, states), unroll=unrolled)

    def discrete(self, gaps: Float[Array, "*shape"]) -> Discrete:
        """Coefficients of the steps over the given gaps; arrays of the shape "*shape depth p"."""
        return jax.vmap(lambda block: block.s5.discrete(gaps), out_axes=-2)(self.blocks)

    def step(
        self,
        x: Float[Array, "*batch width"],
        discrete: Discrete,
        states: Float[Array, "depth *batch p2"],
    ) -> tuple[Float[Array, "*batch width"], Float[Array, "depth *batch p2"]]:
        """The same for one step; unrolled, because it runs inside a loop over time."""
        later = []
        for i in range(self.depth):
            block = jax.tree.map(lambda leaf, i=i: leaf[i], self.blocks)
            here = jax.tree.map(lambda leaf, i=i: leaf[..., i, :], discrete)
            x, state = block.step(x, here, states[i])
            later.append(state)
        return x, jnp.stack(later)
