"""The linear bypass: a linear recurrence from the last measurements to the next, around the latent.

A channel that measures no state has to be decoded from the latent state, and what the latent cannot
hold is lost even one step ahead. Where times are nearly regular, such a channel continues from its
last value instead, by a linear function of the time steps before and of the controls; the wrapped
decoder adds its output:

    x[i+1] = x[i] + gap*(a + B u[i+1] + sum over offsets o of W_o (x, u)[i-o] + decoder(z[i+1]))

Functions of controls that the equations name, such as rpm**2, are inputs beside the controls. After
the context the recurrence runs on its own predictions. The first step after measurements has
weights that minimise the error one step ahead (of a shorter memory in the first steps of a series,
which have no long past); the later steps have weights that minimise the error of a rollout. A gap
counts as at most two median ones.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from physsm.models._network.decoder import Decoder
from physsm.models._network.observations import Observations
from physsm.models._network.scales import StateScales
from physsm.models.phy_ssm.bypass_inputs import BypassInputs
from physsm.models.phy_ssm.decoder import AbstractDecoder
from physsm.nn.layers import on_last_axis, parameter
from physsm.nn.parameter_groups import BYPASS
from physsm.nn.recompute import lean_scan

FAR = 30.0  # scaled: the largest value of a channel
LONGEST = 2.0  # in median gaps: a slope says nothing about a longer one
_DECODER_SHARE = 0.05  # scaled: what the decoder may add in one step is small


class LinearBypass(AbstractDecoder):
    """A decoder wrapped in a linear recurrence.

    A step of the recurrence has scaled channels and then inputs. Weights have one line for 1, one
    for each input of the next step, and then those of the step at each offset. `lags` are the last
    steps, latest first; their last column is 0 before the first step of a series, where the others
    repeat it.
    """

    decoder: Decoder
    rollout_weights: Float[Array, "features free"] = eqx.field(metadata=BYPASS)
    next_weights: Float[Array, "features free"] = eqx.field(metadata=BYPASS)
    short_weights: Float[Array, "short_features free"] | None = eqx.field(metadata=BYPASS)
    inputs: BypassInputs
    free: tuple[int, ...] = eqx.field(static=True)

    def __init__(self, decoder: Decoder, inputs: BypassInputs, states: StateScales):
        self.decoder, self.inputs = decoder, inputs
        self.free = tuple(int(channel) for channel in states.free_channels)
        shape = inputs.shape
        whole = np.zeros((features(inputs, len(shape.offsets)), len(self.free)))
        self.rollout_weights, self.next_weights = parameter(whole), parameter(whole)
        short = np.zeros((features(inputs, shape.short), len(self.free)))
        self.short_weights = parameter(short) if shape.short else None

    @property
    def starts_well(self) -> bool:
        """The recurrence is fitted before any training."""
        return True

    @property
    def past_channels(self) -> Int[np.ndarray, " some"]:
        """All channels that measure no state."""
        return np.array(self.free, np.int64)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Time steps that it reads, counted back from the last."""
        return self.inputs.shape.offsets

    def start(self, dtype: jnp.dtype) -> Float[Array, "lags width"]:
        """Zeros: no step exists yet."""
        width = len(self.inputs.table.channels) + self.inputs.count
        return jnp.zeros((max(self.offsets) + 1, width + 1), dtype)

    def update(
        self, lags: Float[Array, "lags width"], row: Observations
    ) -> Float[Array, "lags width"]:
        """The lags with one more step; before the first step of a series all are as that."""
        now = jnp.append(self._steps(row), jnp.ones(1, lags.dtype))
        moved = jnp.concatenate([now[None], lags[:-1]])
        first = jnp.broadcast_to(now, lags.shape).at[1:, -1].set(0)
        return jnp.where(lags[0, -1] > 0, moved, first)

    def last_lags(self, rows: Observations) -> Float[Array, "*batch lags width"]:
        """The lags after a context."""
        depth = max(self.offsets) + 1
        whole = self._with_steps_before(rows)
        exists = (rows.gaps > 0).astype(whole.dtype)
        before = jnp.zeros((depth - 1, *exists.shape[1:]), whole.dtype)
        exists = jnp.concatenate([before, exists])[..., None]
        last = jnp.concatenate([whole, exists], axis=-1)[-depth:]
        return jnp.moveaxis(last[::-1], 0, -2)

    def decode(self, centred: Float[Array, "*steps d"]) -> Float[Array, "*steps channels"]:
        """The wrapped decoder's output: measured states, and what is added to the others."""
        return self.decoder(centred)

    def one_step(self, rows: Observations, centred: Array) -> Array:
        """Each step but the first as predicted from those before it. Channels that measure a state
        are that state.
        """
        decoded = self.decoder(centred)
        whole = self._with_steps_before(rows)
        filled = whole[max(self.offsets) :]
        slope = self._slopes(self.next_weights, self.offsets, whole)
        if self.short_weights is not None:
            is_step = (rows.gaps[:-1] > 0).astype(jnp.int32)
            is_early = jnp.cumsum(is_step, axis=0) <= max(self.offsets)
            few = self.offsets[: self.inputs.shape.short]
            short = self._slopes(self.short_weights, few, whole)
            slope = jnp.where(is_early[..., None], short, slope)
        free = self.past_channels
        slope = slope + _DECODER_SHARE * decoded[..., free]
        gaps = jnp.minimum(rows.gaps[1:, ..., None], LONGEST)
        moved = filled[:-1, ..., free] + gaps * slope
        return decoded.at[..., free].set(jnp.clip(moved, -FAR, FAR))

    def rollout(self, lags: Array, centred: Array, controls: Array, gaps: Array) -> Array:
        """The future of one series. Times that follow each other quickly are no steps of the
        recurrence: they lie on the way to the next step, which is the time nearest to one gap after
        the last step.
        """
        free, offsets = self.past_channels, np.array(self.offsets)
        early = self._short_as_whole()

        def slope_of(weights: Array, lags: Array, u: Array) -> Array:
            constant, next_input, lagged = self._parts(weights, len(offsets))
            flat = lagged.reshape(-1, lagged.shape[-1])
            return constant + u @ next_input + lags[offsets, :-1].reshape(-1) @ flat

        def body(carry: tuple[Array, Array, Array], inputs: tuple[Array, Array, Array, Array]):
            lags, elapsed, is_measured = carry
            known, u, gap, gap_after = inputs
            elapsed = elapsed + gap
            weights = jnp.where(is_measured, self.next_weights, self.rollout_weights)
            if early is not None:
                weights = jnp.where(lags[-1, -1] > 0, weights, early)
            slope = slope_of(weights, lags, u) + _DECODER_SHARE * known[free]
            moved = lags[0, free] + jnp.minimum(elapsed, LONGEST) * slope
            x = known.at[free].set(jnp.clip(moved, -FAR, FAR))
            is_next = (gap > 0) & (elapsed + gap_after / 2 >= 1)
            step = jnp.concatenate([x, u, jnp.ones(1, x.dtype)])
            after = jnp.where(is_next, jnp.concatenate([step[None], lags[:-1]]), lags)
            elapsed = jnp.where(is_next, jnp.zeros_like(elapsed), elapsed)
            return (after, elapsed, is_measured & ~is_next), x

        start = (lags, jnp.zeros((), lags.dtype), jnp.array(True))
        after = jnp.concatenate([gaps[1:], jnp.ones_like(gaps[:1])])
        inputs = (self.decoder(centred), self.inputs(controls), gaps, after)
        return lean_scan(body, start, inputs)[1]

    def _short_as_whole(self) -> Float[Array, "features free"] | None:
        """The weights of a short memory, if there are any, as weights of all offsets."""
        if self.short_weights is None:
            return None
        missing = self.next_weights.shape[0] - self.short_weights.shape[0]
        return jnp.pad(self.short_weights, ((0, missing), (0, 0)))

    def _with_steps_before(self, rows: Observations) -> Float[Array, "all *batch width"]:
        """All steps after as many as the recurrence reads, which repeat the first of the series."""
        step, is_step = self._steps(rows), rows.gaps > 0
        first = jnp.argmax(is_step, axis=0)[None, ..., None]
        start = jnp.take_along_axis(step, first, axis=0)
        filled = jnp.where(is_step[..., None], step, start)
        before = jnp.broadcast_to(start, (max(self.offsets), *start.shape[1:]))
        return jnp.concatenate([before, filled])

    def _steps(self, rows: Observations) -> Float[Array, "*steps width"]:
        return jnp.concatenate([rows.last, self.inputs(rows.controls)], axis=-1)

    def _slopes(self, weights: Array, offsets: tuple[int, ...], whole: Array) -> Array:
        """Slopes of the recurrence at all steps but the last."""
        before = max(self.offsets)
        constant, next_input, lagged = self._parts(weights, len(offsets))
        inputs = whole[before + 1 :, ..., len(self.inputs.table.channels) :]
        slope = inputs @ next_input + on_last_axis(constant, inputs)
        for offset, weight in zip(offsets, lagged, strict=True):
            slope = slope + whole[before - offset : whole.shape[0] - 1 - offset] @ weight
        return slope

    def _parts(self, weights: Array, offsets: int) -> tuple[Array, Array, Array]:
        """Weights of 1, of the next inputs, and of the step at each offset."""
        inputs = self.inputs.count
        lagged = weights[1 + inputs :]
        by_offset = lagged.reshape(offsets, lagged.shape[0] // offsets, lagged.shape[-1])
        return weights[0], weights[1 : 1 + inputs], by_offset


def features(inputs: BypassInputs, offsets: int) -> int:
    """Number of weights of one channel, for a number of offsets."""
    return 1 + inputs.count + offsets * (len(inputs.table.channels) + inputs.count)
