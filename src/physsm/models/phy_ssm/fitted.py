"""A fitted network: forecast, fill gaps, follow a stream, show the unknowns, save and restore."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from physsm._errors import ConfigError, DataError
from physsm._values import Forecast, Panel, Query
from physsm.data.window import (
    Sizes,
    cut_windows,
    gather,
    whole_series,
)
from physsm.models._base import (
    AbstractFitted,
    Interface,
    Prediction,
    inside_times,
    read_config,
)
from physsm.models._calibration import Calibration, calibrate
from physsm.models.phy_ssm import compute
from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.future import plan_steps
from physsm.models.phy_ssm.network import FAR, Boundary, Network, Observations
from physsm.models.phy_ssm.plan import Plan
from physsm.models.phy_ssm.task import long_enough_windows
from physsm.physics.system import System
from physsm.training.checkpoint import named_arrays, restore_arrays
from physsm.training.loop import Result

_SMALLEST_SPREAD = 1e-6  # scaled: an interval must not have the width zero


@dataclass(frozen=True, eq=False)
class Unknowns:
    """The learned terms over time, in physical units, with their spread over the states.

    `mean` and `std` have shape (series, steps, unknowns); rows after `lengths` are padding.
    """

    names: tuple[str, ...]
    ids: tuple[str, ...]
    times: Float[np.ndarray, "series steps"]
    lengths: np.ndarray
    mean: Float[np.ndarray, "series steps unknowns"]
    std: Float[np.ndarray, "series steps unknowns"]


@dataclass(frozen=True, eq=False)
class Stream:
    """One series as it comes in: everything that its future depends on, whatever its length."""

    boundary: Boundary
    time: float | None
    last: Float[np.ndarray, " channels"]
    control: Float[np.ndarray, " controls"]


class FittedLatent(AbstractFitted):
    """A fitted network."""

    def __init__(
        self,
        system: System | None,
        network: Network,
        interface: Interface,
        calibration: Calibration,
        noise: tuple[float, ...],
        sizes: Sizes,
        training: Result | None = None,
    ):
        self.system = system
        self.network = network
        self.interface = interface
        self.calibration = calibration
        self.noise = noise
        self.sizes = sizes
        self.training = training

    @property
    def plan(self) -> Plan:
        """Scales and places."""
        return self.network.plan

    def calibrated(self, held_out: Panel) -> FittedLatent:
        """The same model with intervals from its errors on series that it was not trained on.

        `noise`, what one step ahead leaves open, is added to the spread of the latent draws; then
        the whole is stretched to cover the measurements.
        """
        residual = held_out.values - self._one_step(held_out).mean
        scaled = residual / np.array(self.plan.channel_scale)
        with np.errstate(invalid="ignore"):
            square = np.nanmean(scaled**2, axis=(0, 1)) if np.isfinite(scaled).any() else 1.0
        noise = np.sqrt(np.nan_to_num(np.broadcast_to(square, (scaled.shape[-1],)), nan=1.0))
        noisy = self._with(noise=tuple(float(x) for x in noise))
        chosen = long_enough_windows(
            held_out, replace(self.sizes, stride=self.sizes.horizon), "validation"
        )
        history, query, target = cut_windows(held_out, chosen)
        prediction = noisy._predict(history, query, wants_spread=True)
        return noisy._with(calibration=calibrate(target.values, prediction.mean, prediction.spread))

    def _with(self, **changes: Any) -> FittedLatent:
        fields = {
            "system": self.system,
            "network": self.network,
            "interface": self.interface,
            "calibration": self.calibration,
            "noise": self.noise,
            "sizes": self.sizes,
            "training": self.training,
        }
        return type(self)(**{**fields, **changes})

    # The interface of all forecasters.

    def _predict(self, history: Panel, query: Query, wants_spread: bool) -> Prediction:
        observed = self._observe(history)
        return self._continue(observed.boundary, history, query, wants_spread)

    def _continue(
        self, boundary: Boundary, history: Panel, query: Query, wants_spread: bool
    ) -> Prediction:
        longest = max(self.plan.largest_gap, 1.0) * self.plan.time_scale
        holds_start = self.network.config.control_hold == "start"
        steps = plan_steps(history, query, longest, holds_start)
        length = compute.rounded_up(len(steps.gaps))
        gaps = self._array(compute.padded_steps(steps.gaps / self.plan.time_scale, length))
        controls = self._array(compute.padded_steps(steps.controls, length))
        future, channels = compute.roll_out(self.network, boundary, controls, gaps)
        series = np.arange(len(history))[:, None]
        mean = self.plan.unscale(np.asarray(channels)[steps.rows, series])
        spread = np.zeros_like(mean)
        if wants_spread:
            draws = compute.spread_of_rollout(
                self.network,
                boundary,
                controls,
                gaps,
                jnp.asarray(0),
                self.network.config.samples,
            )
            latent = np.asarray(draws.channels)[steps.rows, series]
            total = np.sqrt(latent**2 + np.array(self.noise) ** 2) + _SMALLEST_SPREAD
            spread = total * np.array(self.plan.channel_scale)
        states, theta = self._physical(
            np.asarray(future.z_ext)[steps.rows, series],
            np.asarray(future.theta)[steps.rows, series],
        )
        warnings = self._instability(history, query, np.asarray(future.z_ext), steps.rows)
        return Prediction(mean, spread, states, theta, warnings)

    def _one_step(self, history: Panel) -> Prediction:
        observed = self._observe(history)
        predicted = np.asarray(compute.decode(self.network, observed.predicted))
        mean = self._from_right(self.plan.unscale(predicted), history, first=1)
        spread = np.broadcast_to(
            np.array(self.noise) * np.array(self.plan.channel_scale), mean.shape
        )
        return Prediction(mean, np.array(spread))

    def interpolate(self, history: Any, *, times: Any = None) -> Forecast:
        """Values inside the history: at its rows the inferred states, between two rows a mean of
        the step forwards from the one and backwards from the other, weighted by nearness.

        Nothing of this looks at the measurements after the later row.
        """
        panel = self.check(history)
        wanted = inside_times(panel, times)
        observed = self._observe(panel)
        z_ext = self._from_right(np.asarray(observed.z_ext), panel)
        theta = self._from_right(np.asarray(observed.theta), panel)
        place = np.stack(
            [
                np.clip(np.searchsorted(one.times, at, side="right") - 1, 0, len(one.times) - 2)
                for one, at in zip(panel, wanted, strict=True)
            ]
        )
        series = np.arange(len(panel))[:, None]
        before, after = panel.times[series, place], panel.times[series, place + 1]
        share = ((wanted - before) / (after - before))[..., None]
        u = panel.controls[series, place]
        u_after = panel.controls[series, place + 1]
        u_at = u if self.network.config.control_hold == "start" else u + share * (u_after - u)
        forwards = self._advance(z_ext, theta, series, place, u, u_at, wanted - before)
        backwards = self._advance(z_ext, theta, series, place + 1, u_at, u_at, wanted - after)
        forwards = np.where(share == 0, z_ext[series, place], forwards)
        backwards = np.where(share == 1, z_ext[series, place + 1], backwards)
        mixed = (1 - share) * forwards + share * backwards
        channels = np.asarray(compute.decode(self.network, self._array(mixed)))
        mean = self.plan.unscale(channels)
        states, _ = self._physical(mixed, theta[series, place])
        lengths = panel.lengths if times is None else np.full(len(panel), wanted.shape[1])
        spread = np.broadcast_to(
            np.array(self.noise) * np.array(self.plan.channel_scale), mean.shape
        )
        prediction = Prediction(mean, np.array(spread), states, None)
        return self._as_forecast(panel, wanted, lengths, prediction, 0.9)

    def unknowns(self, history: Any) -> Unknowns:
        """The learned terms at each row of the history, in physical units.

        `std` is over draws of the states; a `constant` unknown does not depend on them.
        """
        if self.system is None:
            raise ConfigError(f"{self.name} has no physics, so it has no unknowns")
        panel = self.check(history)
        rows = self._rows(panel)
        theta = np.asarray(self._observe(panel).theta)
        std = np.asarray(compute.spread_of_unknowns(self.network, rows, jnp.asarray(0), 32))
        return Unknowns(
            names=tuple(unknown.name for unknown in self.system.unknowns),
            ids=panel.ids,
            times=panel.times,
            lengths=panel.lengths,
            mean=self._from_right(theta, panel),
            std=self._from_right(std, panel),
        )

    # Streams.

    def start(self) -> Stream:
        """A stream before its first measurement."""
        channels, controls = len(self.plan.channels), len(self.plan.controls)
        return Stream(self.network.start(), None, np.zeros(channels), np.zeros(controls))

    def update(self, stream: Stream, t: float, x: Any, u: Any = ()) -> Stream:
        """The stream after one more row: its time, channels (NaN: not measured) and controls.

        Takes the same time however long the stream is.
        """
        values = np.asarray(x, float).reshape(-1)
        control = np.asarray(u, float).reshape(-1)
        if len(values) != len(stream.last) or len(control) != len(stream.control):
            raise DataError(
                f"a row has {len(self.plan.channels)} channels ({', '.join(self.plan.channels)}) "
                f"and {len(self.plan.controls)} controls, and {len(values)} and {len(control)} "
                "were given"
            )
        if stream.time is not None and t <= stream.time:
            raise DataError(f"the time {t} is not after the stream's last time {stream.time}")
        if not np.isfinite(control).all() or np.isinf(values).any():
            raise DataError("a row holds an infinity, or a control that is not a number")
        scaled = (values - np.array(self.plan.channel_shift)) / np.array(self.plan.channel_scale)
        seen = ~np.isnan(values)
        last = np.where(seen, scaled, stream.last)
        gap = 1.0 if stream.time is None else (t - stream.time) / self.plan.time_scale
        dtype = self.network.dtype
        row = Observations(
            np.asarray(last, dtype),  # type: ignore[arg-type]
            np.asarray(seen, dtype),  # type: ignore[arg-type]
            np.asarray(control, dtype),  # type: ignore[arg-type]
            np.asarray(gap, dtype),  # type: ignore[arg-type]
        )
        return Stream(self._update(stream.boundary, row), float(t), last, control)

    def forecast_stream(
        self, stream: Stream, *, times: Any, controls: Any = None, coverage: float | None = 0.9
    ) -> Forecast:
        """The future of a stream, as `forecast` gives it for a history."""
        if stream.time is None:
            raise DataError("the stream has no measurement yet")
        from physsm.models._future import make_query

        history = Panel(
            ids=("stream",),
            times=np.array([[stream.time]]),
            values=np.full((1, 1, len(self.plan.channels)), np.nan),
            controls=stream.control[None, None],
            lengths=np.array([1]),
            channels=self.interface.channels,
            control_names=self.interface.controls,
            layout=self.interface.layout,
        )
        query = make_query(history, times, None, controls)
        boundary = jax.tree.map(lambda leaf: leaf[None], stream.boundary)
        prediction = self._continue(boundary, history, query, coverage is not None)
        return self._as_forecast(history, query.times, query.lengths, prediction, coverage)

    @cached_property
    def _update(self) -> Callable[[Boundary, Observations], Boundary]:
        return compute.compiled_update(self.network)

    # Files.

    def describe(self) -> dict[str, Any]:
        """Settings, physics, scales."""
        return {
            "config": self.network.config.model_dump(by_alias=True),
            "physics": None if self.system is None else self.system.text,
            "plan": asdict(self.plan),
            "noise": list(self.noise),
            "sizes": asdict(self.sizes),
        }

    def arrays(self) -> dict[str, np.ndarray]:
        """The parameters of the network."""
        return named_arrays(eqx.filter(self.network, eqx.is_inexact_array))

    @classmethod
    def restore(
        cls,
        description: Mapping[str, Any],
        arrays: Mapping[str, np.ndarray],
        interface: Interface,
        calibration: Calibration,
        source: str,
    ) -> FittedLatent:
        """Build the network again and put the stored parameters in."""
        config = read_config(Config, description["config"], cls.name)
        text = description["physics"]
        system = None if text is None else System.parse(text)
        plan = Plan.from_json(description["plan"])
        network = Network(system, plan, config, jr.key(0))
        params, static = eqx.partition(network, eqx.is_inexact_array)
        restored = restore_arrays(params, arrays, Path(source) / "model.safetensors")
        return cls(
            system,
            eqx.combine(restored, static),
            interface,
            calibration,
            tuple(float(x) for x in description["noise"]),
            Sizes(**description["sizes"]),
        )

    # Parts.

    def _rows(self, panel: Panel) -> Observations:
        length = compute.rounded_up(int(panel.lengths.max()))
        scaled = self.plan.scale(panel)
        batch = gather(scaled, whole_series(panel, 0), length, 0, 1.0)
        return compute.as_arrays(
            Observations(batch.last, batch.seen, batch.controls, batch.gaps),  # type: ignore[arg-type]
            self.network.dtype,
        )

    def _observe(self, panel: Panel):
        return compute.observe(self.network, self._rows(panel))

    def _from_right(self, steps: np.ndarray, panel: Panel, first: int = 0) -> np.ndarray:
        """Time-major rows that end together → series first, rows that begin together."""
        rows = np.arange(panel.times.shape[1])[None, :] - first
        place = rows + len(steps) - (panel.lengths[:, None] - first)
        found = steps[np.clip(place, 0, len(steps) - 1), np.arange(len(panel))[:, None]]
        inside = (rows >= 0) & (rows < panel.lengths[:, None] - first)
        return np.where(inside[..., None], found, np.nan)

    def _advance(
        self,
        z_ext: np.ndarray,
        theta: np.ndarray,
        series: np.ndarray,
        place: np.ndarray,
        u: np.ndarray,
        u_next: np.ndarray,
        gaps: np.ndarray,
    ) -> np.ndarray:
        flat = [
            self._array(array.reshape(-1, *array.shape[2:]))
            for array in (
                z_ext[series, place],
                theta[series, place],
                u,
                u_next,
                gaps / self.plan.time_scale,
            )
        ]
        after = np.asarray(compute.advance_rows(self.network, *flat))
        return after.reshape(*place.shape, -1)

    def _physical(
        self, z_ext: np.ndarray, theta: np.ndarray
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        if self.system is None:
            return None, None
        count = len(self.system.states)
        return z_ext[..., :count] * np.array(self.plan.state_scale), theta

    def _instability(
        self, history: Panel, query: Query, z_ext: np.ndarray, rows: np.ndarray
    ) -> tuple[str, ...]:
        """Which series left the stable region, when, and in which state."""
        size = self.network.unit.size
        centre = np.array(self.plan.state_offset) if self.plan.state_offset else 0.0
        far = ~(np.abs(z_ext[..., :size] - centre) < 0.999 * FAR)
        found = []
        for s in range(len(history)):
            out = far[rows[s, : query.lengths[s]], s]
            if out.any():
                k = int(np.flatnonzero(out.any(-1))[0])
                state = int(np.flatnonzero(out[k])[0])
                name = self.system.states[state] if self.system else "the latent"
                found.append(
                    f"the forecast of series {history.ids[s]} leaves the stable region at time "
                    f"{query.times[s, k]:g} by {name}{self._driving_term(state)}"
                )
        return tuple(found)

    def _driving_term(self, state: int) -> str:
        """The unknowns in the equation of a state, which may drive it away."""
        if self.system is None:
            return ""
        row = self.system.states[state]
        terms = [u.name for u in self.system.unknowns if any(p.row == row for p in u.places)]
        return f" (unknown terms in its equation: {', '.join(terms)})" if terms else ""

    def _physics_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        if self.system is None:
            return (), ()
        return self.system.states, tuple(unknown.name for unknown in self.system.unknowns)

    def _limits(self) -> tuple[np.ndarray, np.ndarray]:
        lower, upper = super()._limits()
        if self.system is not None:
            for channel, state in enumerate(self.plan.grounded):
                if state >= 0:
                    bounds = self.system.state_bounds[state]
                    lower[channel] = -np.inf if bounds.lower is None else bounds.lower
                    upper[channel] = np.inf if bounds.upper is None else bounds.upper
        return lower, upper

    def _array(self, array: np.ndarray) -> Array:
        return jnp.asarray(array, self.network.dtype)
