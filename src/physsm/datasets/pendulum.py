"""Simulated pendulums: as video, after the paper's appendix D.2.4, and with the angle measured.

Every series is a pendulum with its own start and torque:

    theta' = omega
    omega' = -k*sin(theta) - c*omega + gain*torque

with the paper's k = g/l, c = b/m and gain = 1/(m l^2), not Gym's factors 3/2 and 3. Angles are in
rad, zero where the pendulum hangs, positive to the right.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from physsm._errors import ConfigError
from physsm._values import Layout, Panel
from physsm.data.scale import channel_moments
from physsm.data.window import Sizes, Windows
from physsm.datasets._dataset import Dataset, Part, RawRows, Split
from physsm.datasets._pendulum_frames import SIDE, render, without_clip_bias
from physsm.datasets._pendulum_physics import GYM_STEP, Coefficients, simulate, simulate_gym

__all__ = [
    "DATASET",
    "Coefficients",
    "PendulumPanels",
    "Truth",
    "frames",
    "render",
    "simulate",
    "simulate_gym",
    "states",
]

_GRAVITY = 10.0  # m/s^2
_MASS = 1.0  # kg
_TORQUE_FREQUENCY = 0.1  # Hz
_PIXELS = tuple(f"p{row}_{column}" for row in range(SIDE) for column in range(SIDE))


@dataclass(frozen=True, eq=False)
class Truth:
    """Simulated states before noise: one state (theta, omega) per row of a panel.

    `amplitude` is the amplitude of the torque in N m.
    """

    states: Float[np.ndarray, "series steps 2"]
    coefficients: Coefficients
    amplitude: Float[np.ndarray, " series"]


@dataclass(frozen=True, eq=False)
class PendulumPanels:
    """Panels that share no series; `test_clean` is `test` without noise or missing cells."""

    train: Panel
    validation: Panel
    test: Panel
    test_clean: Panel
    train_truth: Truth
    validation_truth: Truth
    test_truth: Truth


class _Motion(NamedTuple):
    """Simulated series before measurement; shapes (series, steps)."""

    times: Float[np.ndarray, "series steps"]
    torque: Float[np.ndarray, "series steps"]
    truth: Truth


def frames(
    *,
    series: tuple[int, int, int] = (405, 45, 50),
    steps: int = 300,
    dropped: float = 0.2,
    noise: float = 0.3,
    clip: bool = True,
    integrator: Literal["gym", "accurate"] = "gym",
    seed: int = 0,
) -> PendulumPanels:
    """The paper's video: 28 x 28 pixels as channels p0_0 to p27_27, control `torque`.

    `series` counts training, validation and test. A share `dropped` of `steps` frames, 0.05 s
    apart, is removed at random, different frames in each series; by default 240 remain. g = 10,
    m = 1, b = 0.7; l is uniform in 1 to 2 m, the start within 30 degrees of hanging and 1 rad/s.
    The torque is A*cos(2*pi*0.1*t), A uniform in -5 to 5 N m. "gym" is the paper's integrator;
    "accurate" solves the equations.

    Pixels get Gaussian noise of standard deviation `noise`. With `clip`, as in the paper, they are
    then clipped to [0, 1]; that shifts the mean of a black pixel to 0.12, so that a model that fits
    the noisy frames perfectly still has a mean absolute error of 0.11 against the clean ones.

    Values are float32: the full size takes 0.4 GB, half of what float64 would.
    """
    _require(steps >= 1, "steps", steps, "at least 1")
    _require(0 <= dropped < 1, "dropped", dropped, "a share from 0 to below 1")
    _require(0 <= noise < np.inf, "noise", noise, "a number from 0")
    _require(integrator in ("gym", "accurate"), "integrator", integrator, "gym or accurate")
    n_frames = max(1, steps - round(dropped * steps))

    def move(count: int, rng: np.random.Generator) -> _Motion:
        return _paper_motion(count, steps, n_frames, integrator, rng)

    def measure(truth: Truth, rng: np.random.Generator) -> np.ndarray:
        return _noisy_frames(truth.states[..., 0], noise, clip, rng)

    def exact(truth: Truth) -> np.ndarray:
        return render(truth.states[..., 0]).reshape(*truth.states.shape[:2], -1)

    return _make_panels(series, seed, _PIXELS, move, measure, exact)


def states(
    *,
    series: tuple[int, int, int] = (40, 10, 10),
    rows: int = 120,
    mean_gap: float = 0.1,
    noise: float = 0.05,
    missing: float = 0.1,
    start_angle: float = 2.0,
    lengths: tuple[float, float] = (1.0, 1.0),
    friction: float = 0.1,
    measure_omega: bool = False,
    seed: int = 0,
) -> PendulumPanels:
    """Pendulums whose angle is measured: channel `theta` in rad, control `torque` in N m.

    Gaps are uniform in 0.25 to 1.75 times `mean_gap` (s), different for every series. Each cell
    gets Gaussian noise of standard deviation `noise` and is missing with probability `missing`;
    `measure_omega` adds the channel `omega` in rad/s, with the same noise. Pendulums are released
    at rest between half of `start_angle` (rad) and all of it, on either side: with the defaults
    none goes over the top. Lengths (m) are uniform between the two numbers; equal numbers give
    all series the same pendulum. `friction` is c in 1/s; g = 10 and m = 1.

    The torque is A*cos(2*pi*0.1*t + phase) at the rows, with |A| up to 1.5 N m, and is held from
    each row to the next, so that the rows contain the whole input.
    """
    _require(rows >= 1, "rows", rows, "at least 1")
    _require(0 < mean_gap < np.inf, "mean_gap", mean_gap, "a number above 0")
    _require(0 <= noise < np.inf, "noise", noise, "a number from 0")
    _require(0 <= missing < 1, "missing", missing, "a share from 0 to below 1")
    _require(0 <= start_angle < np.inf, "start_angle", start_angle, "a number from 0")
    rising = 0 < lengths[0] <= lengths[1] < np.inf
    _require(rising, "lengths", lengths, "two positive numbers, the smaller first")
    _require(0 <= friction < np.inf, "friction", friction, "a number from 0")
    channels = ("theta", "omega") if measure_omega else ("theta",)

    def move(count: int, rng: np.random.Generator) -> _Motion:
        return _released_motion(count, rows, mean_gap, start_angle, lengths, friction, rng)

    def exact(truth: Truth) -> np.ndarray:
        return truth.states[..., : len(channels)]

    def measure(truth: Truth, rng: np.random.Generator) -> np.ndarray:
        noisy = exact(truth) + noise * rng.standard_normal(exact(truth).shape)
        return np.where(rng.random(noisy.shape) < missing, np.nan, noisy)

    return _make_panels(series, seed, channels, move, measure, exact)


def _split(panels: PendulumPanels, **details: Any) -> Split:
    """Split with one window per series; two thirds are context (160 of the paper's 240 rows)."""
    rows = panels.train.times.shape[1]
    sizes = Sizes(rows - rows // 3, rows // 3, rows // 3)

    def part(panel: Panel) -> Part:
        raw = tuple(RawRows(name, np.arange(panel.times.shape[1])) for name in panel.ids)
        start = np.zeros(len(panel), np.int64)
        boundary, stop = start + sizes.context, start + sizes.context + sizes.horizon
        return Part(panel, Windows(np.arange(len(panel)), start, boundary, stop), raw)

    parts = part(panels.train), part(panels.validation), part(panels.test)
    return Split(*parts, sizes, truth=panels.test_clean, **details)


def _paper(*, seed: int = 0, **settings: Any) -> Split:
    """The published video; errors are relative to frames without noise."""
    noise = settings.get("noise", 0.3)
    if not settings.get("clip", True):
        return _video_split(frames(seed=seed, **settings))
    return _video_split(
        frames(seed=seed, **settings),
        debias=functools.partial(without_clip_bias, noise=noise),
        notes=(
            "Noise was cut to [0, 1], so that a perfect forecast of noisy frames has an MAE of "
            "about 0.11 against clean ones; the debiased scores have no such floor.",
        ),
    )


def _strict(*, seed: int = 0, **settings: Any) -> Split:
    """The same video without clipping, hence without an error floor, and with an exact solver."""
    return _video_split(
        frames(**{"clip": False, "integrator": "accurate", "seed": seed, **settings})
    )


def _video_split(panels: PendulumPanels, **details: Any) -> Split:
    unit = np.ones(len(_PIXELS))
    return _split(panels, unit=unit, unit_words="the range of a pixel, 0 to 1", **details)


def _states(*, seed: int = 0, **settings: Any) -> Split:
    """Measured angles."""
    _require(settings.get("rows", 120) >= 3, "rows", settings.get("rows"), "at least 3")
    panels = states(seed=seed, **settings)
    _, scale = channel_moments(panels.train)
    return _split(panels, unit=scale, unit_words="the standard deviation in training")


DATASET: Final = Dataset(
    name="pendulum",
    summary="simulated pendulums: video of 28 x 28 pixels, or a measured angle",
    system="pendulum",
    protocols={"paper": _paper, "strict": _strict, "states": _states},
    units={"time": "s"},
)


def _make_panels(
    series: tuple[int, int, int],
    seed: int,
    channels: tuple[str, ...],
    move: Callable[[int, np.random.Generator], _Motion],
    measure: Callable[[Truth, np.random.Generator], np.ndarray],
    exact: Callable[[Truth], np.ndarray],
) -> PendulumPanels:
    """Panels of simulated and measured series.

    Training, validation and test have separate random numbers, so that a larger training set
    leaves the test set unchanged.
    """
    _require(min(series) >= 1, "series", series, "three numbers of at least 1")
    _require(seed >= 0, "seed", seed, "0 or more")

    def make(split: int, name: str) -> tuple[Panel, Truth]:
        rng = np.random.default_rng([seed, split])
        times, torque, truth = move(series[split], rng)
        panel = Panel(
            ids=tuple(f"{name}_{i}" for i in range(series[split])),
            times=times,
            values=measure(truth, rng),
            controls=torque[..., None],
            lengths=np.full(series[split], times.shape[1]),
            channels=channels,
            control_names=("torque",),
            layout=Layout(series="series"),
        )
        return panel, truth

    train, train_truth = make(0, "train")
    validation, validation_truth = make(1, "validation")
    test, test_truth = make(2, "test")
    test_clean = replace(test, values=exact(test_truth))
    return PendulumPanels(
        train, validation, test, test_clean, train_truth, validation_truth, test_truth
    )


def _paper_motion(
    count: int,
    steps: int,
    n_frames: int,
    integrator: Literal["gym", "accurate"],
    rng: np.random.Generator,
) -> _Motion:
    """Motion in the paper's set-up at `n_frames` random frames."""
    pendulums = Coefficients.of_point_mass(
        rng.uniform(1, 2, count), mass=_MASS, gravity=_GRAVITY, damping=0.7
    )
    limit = np.array([np.pi / 6, 1.0])  # rad, rad/s: Gym's reset, near the hanging position
    start = rng.uniform(-limit, limit, (count, 2))
    amplitude = rng.uniform(-5, 5, count)
    times = np.tile(GYM_STEP * np.arange(steps), (count, 1))
    torque = _cosine(amplitude[:, None], times)
    if integrator == "gym":
        moved = simulate_gym(pendulums, start, torque)
    else:
        moved = simulate(pendulums, start, times, functools.partial(_cosine, amplitude))
    keep = np.sort(
        rng.permuted(np.tile(np.arange(steps), (count, 1)), axis=1)[:, :n_frames], axis=1
    )
    return _Motion(
        np.take_along_axis(times, keep, axis=1),
        np.take_along_axis(torque, keep, axis=1),
        Truth(np.take_along_axis(moved, keep[..., None], axis=1), pendulums, amplitude),
    )


def _released_motion(
    count: int,
    rows: int,
    mean_gap: float,
    start_angle: float,
    lengths: tuple[float, float],
    friction: float,
    rng: np.random.Generator,
) -> _Motion:
    """Motion for `states`, at irregular times."""
    pendulums = Coefficients.of_point_mass(
        rng.uniform(*lengths, count), mass=_MASS, gravity=_GRAVITY, damping=friction * _MASS
    )
    angle = rng.choice([-1.0, 1.0], count) * rng.uniform(start_angle / 2, start_angle, count)
    gaps = mean_gap * rng.uniform(0.25, 1.75, (count, rows))
    times = np.cumsum(gaps, axis=1) - gaps[:, :1]
    amplitude = rng.uniform(-1.5, 1.5, count)
    torque = _cosine(amplitude[:, None], times, rng.uniform(0, 2 * np.pi, (count, 1)))
    moved = simulate(pendulums, np.stack([angle, np.zeros(count)], axis=1), times, torque)
    return _Motion(times, torque, Truth(moved, pendulums, amplitude))


def _noisy_frames(
    theta: Float[np.ndarray, "series steps"], noise: float, clip: bool, rng: np.random.Generator
) -> Float[np.ndarray, "series steps 784"]:
    """Noisy frames, rendered one series at a time to save memory."""
    values = np.empty((*theta.shape, SIDE * SIDE), np.float32)
    for i, angles in enumerate(theta):
        values[i] = render(angles).reshape(values[i].shape)
        values[i] += noise * rng.standard_normal(values[i].shape, np.float32)
        if clip:
            np.clip(values[i], 0, 1, out=values[i])
    return values


def _cosine(
    amplitude: np.ndarray, times: np.ndarray, phase: np.ndarray | float = 0.0
) -> np.ndarray:
    return amplitude * np.cos(2 * np.pi * _TORQUE_FREQUENCY * times + phase)


def _require(holds: bool, setting: str, value: object, rule: str) -> None:
    if not holds:
        raise ConfigError(f"pendulum: {setting} must be {rule}, but is {value!r}")
