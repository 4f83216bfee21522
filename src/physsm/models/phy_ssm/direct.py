"""A direct path from the last measurements to the next: linear, beside the physics.

A channel that measures no state has to be decoded from the latent state, and what the latent cannot
hold is lost even one row ahead. Where rows are nearly regular, such a channel goes on from its last
value instead, by a linear function of the rows before and of the controls; the decoder adds what it
knows of the state:

    x[i+1] = x[i] + gap*(a + B u[i+1] + sum over offsets o of W_o (x, u)[i-o] + decoder(z[i+1]))

After the context it runs on its own predictions. The weights start as a ridge regression; in the
first rows of a series, which have no long past, others of a shorter memory serve. A gap counts as
at most two median ones.
"""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.models.phy_ssm.plan import Plan
from physsm.models.phy_ssm.values import Observations
from physsm.nn.broadcast import on_last_axis
from physsm.nn.initial import parameter
from physsm.nn.lean_scan import lean_scan

FAR = 30.0  # scaled: how far a channel may go
_DECODER_SHARE = 0.05  # scaled: what one step of a rollout may add is small
LONGEST = 2.0  # in median gaps: a slope says nothing of what happens in a longer one


class DirectPath(eqx.Module):
    """Rows are scaled channels and then controls; `direct` has one line for 1, one for each control
    of the next row, and then those of the row at each offset.
    """

    direct: Float[Array, "features free"]
    direct_short: Float[Array, "short_features free"] | None
    plan: Plan = eqx.field(static=True)

    def __init__(self, plan: Plan):
        self.plan = plan
        free = len(free_channels(plan))
        self.direct = parameter(np.zeros((features(plan, len(plan.offsets)), free)))
        self.direct_short = None
        if plan.short:
            self.direct_short = parameter(np.zeros((features(plan, plan.short), free)))

    def start(self) -> Float[Array, "depth width"]:
        """The rows before a series: none."""
        width = len(self.plan.channels) + len(self.plan.controls)
        return jnp.zeros((max(self.plan.offsets) + 1, width), self.direct.dtype)

    def after(
        self, lags: Float[Array, "depth width"], row: Observations, is_started: Float[Array, ""]
    ) -> Float[Array, "depth width"]:
        """The rows, latest first, with one more; before the first, all is as there."""
        now = self._rows(row)
        moved = jnp.concatenate([now[None], lags[:-1]])
        return jnp.where(is_started > 0, moved, jnp.broadcast_to(now, lags.shape))

    def last_rows(self, rows: Observations) -> Float[Array, "*batch depth width"]:
        """The rows that a future goes on from, latest first."""
        depth = max(self.plan.offsets) + 1
        return jnp.moveaxis(self._with_rows_before(rows)[-depth:][::-1], 0, -2)

    def predict(
        self, rows: Observations, decoded: Float[Array, "before *batch channels"]
    ) -> Float[Array, "before *batch channels"]:
        """Each row but the first as predicted from those before it. Of `decoded`, channels that
        measure a state are taken as they are.
        """
        whole = self._with_rows_before(rows)
        filled = whole[max(self.plan.offsets) :]
        slope = self._slopes(self.direct, self.plan.offsets, whole)
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
        constant, next_control, lagged = self._parts(self.direct, len(self.plan.offsets))
        flat = lagged.reshape(-1, lagged.shape[-1])
        free, offsets = free_channels(self.plan), np.array(self.plan.offsets)

        def body(carry: tuple[Array, Array], inputs: tuple[Array, Array, Array, Array]):
            lags, elapsed = carry
            known, u, gap, gap_after = inputs
            elapsed = elapsed + gap
            slope = constant + u @ next_control + lags[offsets].reshape(-1) @ flat
            slope = slope + _DECODER_SHARE * known[free]
            moved = lags[0, free] + jnp.minimum(elapsed, LONGEST) * slope
            x = known.at[free].set(jnp.clip(moved, -FAR, FAR))
            is_next = (gap > 0) & (elapsed + gap_after / 2 >= 1)
            shifted = jnp.concatenate([jnp.concatenate([x, u])[None], lags[:-1]])
            after = jnp.where(is_next, shifted, lags)
            return (after, jnp.where(is_next, jnp.zeros_like(elapsed), elapsed)), x

        scaled = self.plan.scale_controls(controls)
        start = (lags, jnp.zeros((), lags.dtype))
        after = jnp.concatenate([gaps[1:], jnp.ones_like(gaps[:1])])
        return lean_scan(body, start, (decoded, scaled, gaps, after))[1]

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
        return jnp.concatenate([rows.last, self.plan.scale_controls(rows.controls)], axis=-1)

    def _slopes(
        self, direct: Array, offsets: tuple[int, ...], whole: Array
    ) -> Float[Array, "before *batch free"]:
        """What the path says at all rows but the last, of rows behind those before them."""
        before = max(self.plan.offsets)
        constant, next_control, lagged = self._parts(direct, len(offsets))
        controls = whole[before + 1 :, ..., len(self.plan.channels) :]
        slope = controls @ next_control + on_last_axis(constant, controls)
        for offset, weights in zip(offsets, lagged, strict=True):
            slope = slope + whole[before - offset : whole.shape[0] - 1 - offset] @ weights
        return slope

    def _parts(self, direct: Array, offsets: int) -> tuple[Array, Array, Array]:
        """Weights of 1, of the next controls, and of the row at each offset."""
        controls = len(self.plan.controls)
        lagged = direct[1 + controls :]
        by_offset = lagged.reshape(offsets, lagged.shape[0] // offsets, lagged.shape[-1])
        return direct[0], direct[1 : 1 + controls], by_offset


def free_channels(plan: Plan) -> np.ndarray:
    """The channels that measure no state."""
    return np.flatnonzero(np.array(plan.grounded) < 0)


def features(plan: Plan, offsets: int) -> int:
    """The lines of the weights of so many offsets."""
    width = len(plan.channels) + len(plan.controls)
    return 1 + len(plan.controls) + offsets * width
