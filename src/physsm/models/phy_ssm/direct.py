"""A direct path from the last measurements to the next: linear, beside the physics.

A channel that measures no state has to be decoded from the latent state, and what the latent cannot
hold is lost even one row ahead. Where rows are nearly regular, such a channel goes on from its last
value instead, by a linear function of the rows before and of the controls; the decoder adds what it
knows of the state:

    x[i+1] = x[i] + gap*(a + B u[i+1] + sum over offsets o of W_o (x, u)[i-o] + decoder(z[i+1]))

Functions of controls that the equations name, such as rpm**2, are inputs beside the controls. After
the context it runs on its own predictions. A row that follows measured ones has weights that serve
best one row ahead, of a shorter memory in the first rows of a series, which have no long past. The
rows after it have weights that serve best in a run. A gap counts as at most two median ones.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.models._latent.plan import Plan
from physsm.models._latent.rows import Observations
from physsm.models.phy_ssm.path_inputs import PathInputs
from physsm.nn.layers import on_last_axis, parameter
from physsm.nn.parameter_groups import BYPASS
from physsm.nn.recompute import lean_scan

FAR = 30.0  # scaled: how far a channel may go
_DECODER_SHARE = 0.05  # scaled: what one step of a rollout may add is small
LONGEST = 2.0  # in median gaps: a slope says nothing of what happens in a longer one


class DirectPath(eqx.Module):
    """Rows are scaled channels and then inputs; weights have one line for 1, one for each input of
    the next row, and then those of the row at each offset. `lags` are the last rows, latest first;
    their last column is 0 before the first row of a series, where they are as that.
    """

    direct_run: Float[Array, "features free"] = eqx.field(metadata=BYPASS)
    direct_next: Float[Array, "features free"] = eqx.field(metadata=BYPASS)
    direct_short: Float[Array, "short_features free"] | None = eqx.field(metadata=BYPASS)
    inputs: PathInputs = eqx.field(static=True)

    def __init__(self, inputs: PathInputs):
        self.inputs = inputs
        plan = inputs.plan
        free = len(free_channels(plan))
        self.direct_run = parameter(np.zeros((features(plan, len(plan.offsets)), free)))
        self.direct_next = parameter(np.zeros((features(plan, len(plan.offsets)), free)))
        self.direct_short = None
        if plan.short:
            self.direct_short = parameter(np.zeros((features(plan, plan.short), free)))

    @property
    def plan(self) -> Plan:
        """The plan of the network."""
        return self.inputs.plan

    def start(self) -> Float[Array, "depth width"]:
        """The rows before a series: none."""
        width = len(self.plan.channels) + self.inputs.count
        return jnp.zeros((max(self.plan.offsets) + 1, width + 1), self.direct_run.dtype)

    def after(
        self, lags: Float[Array, "depth width"], row: Observations, is_started: Float[Array, ""]
    ) -> Float[Array, "depth width"]:
        """The rows, latest first, with one more; before the first, all is as there."""
        now = jnp.append(self._rows(row), jnp.ones(1, lags.dtype))
        moved = jnp.concatenate([now[None], lags[:-1]])
        first = jnp.broadcast_to(now, lags.shape).at[1:, -1].set(0)
        return jnp.where(is_started > 0, moved, first)

    def last_rows(self, rows: Observations) -> Float[Array, "*batch depth width"]:
        """The rows that a future goes on from, latest first."""
        depth = max(self.plan.offsets) + 1
        whole = self._with_rows_before(rows)
        exists = (rows.gaps > 0).astype(whole.dtype)
        before = jnp.zeros((depth - 1, *exists.shape[1:]), whole.dtype)
        exists = jnp.concatenate([before, exists])[..., None]
        last = jnp.concatenate([whole, exists], axis=-1)[-depth:]
        return jnp.moveaxis(last[::-1], 0, -2)

    def predict(
        self, rows: Observations, decoded: Float[Array, "before *batch channels"]
    ) -> Float[Array, "before *batch channels"]:
        """Each row but the first as predicted from those before it. Of `decoded`, channels that
        measure a state are taken as they are.
        """
        whole = self._with_rows_before(rows)
        filled = whole[max(self.plan.offsets) :]
        slope = self._slopes(self.direct_next, self.plan.offsets, whole)
        if self.direct_short is not None:
            is_row = (rows.gaps[:-1] > 0).astype(jnp.int32)
            is_young = jnp.cumsum(is_row, axis=0) <= max(self.plan.offsets)
            short = self._slopes(self.direct_short, self.plan.offsets[: self.plan.short], whole)
            slope = jnp.where(is_young[..., None], short, slope)
        free = free_channels(self.plan)
        slope = slope + _DECODER_SHARE * decoded[..., free]
        gaps = jnp.minimum(rows.gaps[1:, ..., None], LONGEST)
        moved = filled[:-1, ..., free] + gaps * slope
        return decoded.at[..., free].set(jnp.clip(moved, -FAR, FAR))

    def run(
        self,
        lags: Float[Array, "depth width"],
        decoded: Float[Array, "steps channels"],
        controls: Float[Array, "steps controls"],
        gaps: Float[Array, " steps"],
    ) -> Float[Array, "steps channels"]:
        """The future of one series. Points that come quickly one after the other are no rows: they
        lie on the way to the next, which is the point nearest to one gap after the last.
        """
        free, offsets = free_channels(self.plan), np.array(self.plan.offsets)
        young = self._without_old_rows()

        def slope_of(direct: Array, lags: Array, u: Array) -> Array:
            constant, next_input, lagged = self._parts(direct, len(offsets))
            flat = lagged.reshape(-1, lagged.shape[-1])
            return constant + u @ next_input + lags[offsets, :-1].reshape(-1) @ flat

        def body(carry: tuple[Array, Array, Array], inputs: tuple[Array, Array, Array, Array]):
            lags, elapsed, is_measured = carry
            known, u, gap, gap_after = inputs
            elapsed = elapsed + gap
            direct = jnp.where(is_measured, self.direct_next, self.direct_run)
            if young is not None:
                direct = jnp.where(lags[-1, -1] > 0, direct, young)
            slope = slope_of(direct, lags, u) + _DECODER_SHARE * known[free]
            moved = lags[0, free] + jnp.minimum(elapsed, LONGEST) * slope
            x = known.at[free].set(jnp.clip(moved, -FAR, FAR))
            is_next = (gap > 0) & (elapsed + gap_after / 2 >= 1)
            row = jnp.concatenate([x, u, jnp.ones(1, x.dtype)])
            shifted = jnp.concatenate([row[None], lags[:-1]])
            after = jnp.where(is_next, shifted, lags)
            elapsed = jnp.where(is_next, jnp.zeros_like(elapsed), elapsed)
            return (after, elapsed, is_measured & ~is_next), x

        start = (lags, jnp.zeros((), lags.dtype), jnp.array(True))
        after = jnp.concatenate([gaps[1:], jnp.ones_like(gaps[:1])])
        return lean_scan(body, start, (decoded, self.inputs(controls), gaps, after))[1]

    def _without_old_rows(self) -> Float[Array, "features free"] | None:
        """The weights of a short memory, if there are any, as weights of all offsets."""
        if self.direct_short is None:
            return None
        missing = self.direct_next.shape[0] - self.direct_short.shape[0]
        return jnp.pad(self.direct_short, ((0, missing), (0, 0)))

    def _with_rows_before(self, rows: Observations) -> Float[Array, "all *batch width"]:
        """All rows behind as many as the path looks back at; before a series all is as in its
        first row.
        """
        row, is_row = self._rows(rows), rows.gaps > 0
        first = jnp.argmax(is_row, axis=0)[None, ..., None]
        start = jnp.take_along_axis(row, first, axis=0)
        filled = jnp.where(is_row[..., None], row, start)
        before = jnp.broadcast_to(start, (max(self.plan.offsets), *start.shape[1:]))
        return jnp.concatenate([before, filled])

    def _rows(self, rows: Observations) -> Float[Array, "*steps width"]:
        return jnp.concatenate([rows.last, self.inputs(rows.controls)], axis=-1)

    def _slopes(
        self, direct: Array, offsets: tuple[int, ...], whole: Array
    ) -> Float[Array, "before *batch free"]:
        """What the path says at all rows but the last, of rows behind those before them."""
        before = max(self.plan.offsets)
        constant, next_input, lagged = self._parts(direct, len(offsets))
        inputs = whole[before + 1 :, ..., len(self.plan.channels) :]
        slope = inputs @ next_input + on_last_axis(constant, inputs)
        for offset, weights in zip(offsets, lagged, strict=True):
            slope = slope + whole[before - offset : whole.shape[0] - 1 - offset] @ weights
        return slope

    def _parts(self, direct: Array, offsets: int) -> tuple[Array, Array, Array]:
        """Weights of 1, of the next inputs, and of the row at each offset."""
        inputs = self.inputs.count
        lagged = direct[1 + inputs :]
        by_offset = lagged.reshape(offsets, lagged.shape[0] // offsets, lagged.shape[-1])
        return direct[0], direct[1 : 1 + inputs], by_offset


def free_channels(plan: Plan) -> np.ndarray:
    """The channels that measure no state."""
    return np.flatnonzero(np.array(plan.grounded) < 0)


def features(plan: Plan, offsets: int) -> int:
    """The lines of the weights of so many offsets."""
    inputs = len(plan.controls) + len(plan.term_scale)
    return 1 + inputs + offsets * (len(plan.channels) + inputs)
