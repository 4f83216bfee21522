"""The pendulum's panels: sizes, noise, drops, splits, and that truth and panels fit together."""

import inspect
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from physsm._errors import ConfigError
from physsm.datasets.pendulum import DATASET, frames, render, states

SMALL = {"series": (6, 2, 3), "steps": 50}


def assert_same(one, other):
    for split in ("train", "validation", "test", "test_clean"):
        for field in ("times", "values", "controls"):
            np.testing.assert_array_equal(
                getattr(getattr(one, split), field), getattr(getattr(other, split), field)
            )


@pytest.mark.parametrize(("make", "size"), [(frames, SMALL), (states, {"rows": 20})])
def test_the_seed_decides_everything(make, size):
    assert_same(make(**size, seed=3), make(**size, seed=3))
    with pytest.raises(AssertionError):
        assert_same(make(**size, seed=3), make(**size, seed=4))


def test_the_paper_s_sizes_are_the_defaults():
    series = inspect.signature(frames).parameters["series"].default
    assert series == (405, 45, 50)
    assert sum(series) == 500
    panels = frames(series=(1, 1, 1))
    assert panels.train.times.shape == (1, 240)
    assert panels.train.times.max() <= 299 * 0.05


def test_frames_are_panels_of_named_pixels():
    panels = frames(**SMALL)
    for panel, count in ((panels.train, 6), (panels.validation, 2), (panels.test, 3)):
        assert panel.values.shape == (count, 40, 784)
        assert panel.values.dtype == np.float32
        assert panel.controls.shape == (count, 40, 1)
        assert panel.control_names == ("torque",)
        np.testing.assert_array_equal(panel.lengths, 40)
    assert panels.test.channels[:2] == ("p0_0", "p0_1")
    assert panels.test.channels[-1] == "p27_27"
    top_row = panels.test_clean.only(["p0_13", "p0_14"]).values
    below_the_pivot = panels.test_clean.only(["p6_13", "p6_14"]).values
    assert top_row.max() < 0.01 < 0.5 < below_the_pivot.min()


def test_no_series_is_in_two_splits():
    for panels in (frames(**SMALL), states()):
        truths = (panels.train_truth, panels.validation_truth, panels.test_truth)
        ids = [*panels.train.ids, *panels.validation.ids, *panels.test.ids]
        starts = np.concatenate([truth.states[:, 0] for truth in truths])
        assert len(set(ids)) == len(ids)
        assert len(np.unique(starts, axis=0)) == len(starts)


def test_a_larger_training_set_leaves_the_test_set_as_it_is():
    few, many = frames(**SMALL), frames(series=(9, 2, 3), steps=50)
    np.testing.assert_array_equal(few.test.values, many.test.values)


def test_each_series_drops_its_own_frames():
    times = frames(**SMALL, dropped=0.3).train.times
    assert times.shape == (6, 35)
    steps = np.rint(times / 0.05)
    np.testing.assert_allclose(times, 0.05 * steps, atol=1e-12)
    assert np.all(np.diff(steps) >= 1)
    assert len(np.unique(steps, axis=0)) == 6
    assert steps.max() == 49  # early and late frames alike


def test_clean_frames_show_the_true_angle():
    panels = frames(**SMALL)
    expected = render(panels.test_truth.states[..., 0]).reshape(panels.test.values.shape)
    np.testing.assert_array_equal(panels.test_clean.values, expected)
    np.testing.assert_array_equal(panels.test_clean.times, panels.test.times)


def test_noise_has_its_level_and_clipping_its_bias():
    plain, clipped = frames(**SMALL, clip=False), frames(**SMALL)
    noise = plain.test.values - plain.test_clean.values
    assert noise.std() == pytest.approx(0.3, rel=0.02)
    assert noise.mean() == pytest.approx(0, abs=0.005)
    np.testing.assert_array_equal(np.clip(plain.test.values, 0, 1), clipped.test.values)
    black = clipped.test.values[clipped.test_clean.values < 1e-3]
    assert black.mean() == pytest.approx(0.3 / np.sqrt(2 * np.pi), rel=0.02)


def test_training_frames_are_noisy_too():
    panels = frames(**SMALL, clip=False)
    clean = render(panels.train_truth.states[..., 0]).reshape(panels.train.values.shape)
    assert (panels.train.values - clean).std() == pytest.approx(0.3, rel=0.02)


def test_paper_pendulums_are_drawn_from_their_ranges():
    truth = frames(series=(400, 1, 1), steps=2, dropped=0.0, noise=0.0).train_truth
    length = 10 / truth.coefficients.k
    np.testing.assert_allclose(truth.coefficients.gain, 1 / length**2)
    np.testing.assert_allclose(truth.coefficients.c, 0.7)
    drawn = (
        (length, 1, 2),
        (truth.amplitude, -5, 5),
        (truth.states[:, 0, 0], -np.pi / 6, np.pi / 6),
        (truth.states[:, 0, 1], -1, 1),
    )
    for values, low, high in drawn:
        assert low <= values.min() < low + 0.05 * (high - low)
        assert high - 0.05 * (high - low) < values.max() <= high


def test_paper_torque_is_a_cosine_with_the_series_amplitude():
    panels = frames(**SMALL)
    expected = panels.train_truth.amplitude[:, None] * np.cos(0.2 * np.pi * panels.train.times)
    np.testing.assert_allclose(panels.train.controls[..., 0], expected, atol=1e-12)


def test_gym_s_motion_is_near_the_accurate_one_but_not_equal():
    gym = frames(**SMALL).test_truth.states[..., 0]
    accurate = frames(**SMALL, integrator="accurate").test_truth.states[..., 0]
    assert 1e-3 < np.abs(gym - accurate).max() < 0.1


def slopes(truth, torque, i):
    """SciPy's right-hand side, from what the truth says and the torque that is held."""
    k, c, gain = (getattr(truth.coefficients, name)[i] for name in ("k", "c", "gain"))
    return lambda t, y: [y[1], -k * np.sin(y[0]) - c * y[1] + gain * torque]


def test_states_obey_the_equation_with_the_coefficients_given():
    panels = states(series=(2, 1, 1), rows=40, lengths=(0.8, 2.0), friction=0.3)
    truth, panel = panels.train_truth, panels.train
    assert truth.coefficients.k[0] != truth.coefficients.k[1]
    np.testing.assert_allclose(truth.coefficients.c, 0.3)
    for i in range(2):
        for row, (start, stop) in enumerate(pairwise(panel.times[i])):
            slope = slopes(truth, panel.controls[i, row, 0], i)
            now, after = truth.states[i, row : row + 2]
            solved = solve_ivp(slope, (start, stop), now, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(after, solved.y[:, -1], rtol=0, atol=1e-8)


def test_states_have_irregular_times_noise_and_missing_cells():
    panels = states(series=(60, 1, 2), rows=50, noise=0.2, missing=0.3, mean_gap=0.5)
    panel, truth = panels.train, panels.train_truth
    assert panel.channels == ("theta",)
    np.testing.assert_array_equal(panel.times[:, 0], 0)
    assert panel.gaps.mean() == pytest.approx(0.5, rel=0.03)
    assert 0.12 < panel.gaps.min() < 0.14
    assert len(np.unique(panel.times[:, 1])) == 60
    assert panel.observed.mean() == pytest.approx(0.7, abs=0.02)
    noise = (panel.values - truth.states[..., :1])[panel.observed]
    assert noise.std() == pytest.approx(0.2, rel=0.05)
    assert panels.test_clean.observed.all()
    np.testing.assert_array_equal(panels.test_clean.values, panels.test_truth.states[..., :1])


def test_omega_can_be_measured():
    panels = states(measure_omega=True, noise=0.0, missing=0.0)
    assert panels.train.channels == ("theta", "omega")
    np.testing.assert_array_equal(panels.train.values, panels.train_truth.states)


def test_the_default_pendulum_is_one_that_swings_widely_but_not_over_the_top():
    panels = states(series=(300, 1, 1), rows=120)
    truth = panels.train_truth
    np.testing.assert_array_equal(truth.coefficients.k, 10.0)
    np.testing.assert_array_equal(truth.coefficients.gain, 1.0)
    start = np.abs(truth.states[:, 0, 0])
    assert 1.0 <= start.min() < 1.05 < 1.95 < start.max() <= 2.0
    assert np.abs(truth.states[..., 0]).max() < np.pi


@pytest.mark.parametrize(
    ("make", "wrong", "message"),
    [
        (frames, {"series": (0, 1, 1)}, r"series must be .* at least 1, but is \(0, 1, 1\)"),
        (frames, {"steps": 0}, "steps must be at least 1, but is 0"),
        (frames, {"dropped": 1.0}, "dropped must be a share"),
        (frames, {"noise": float("nan")}, "noise must be"),
        (frames, {"seed": -1}, "seed must be 0 or more, but is -1"),
        (states, {"rows": 0}, "rows must be at least 1"),
        (states, {"mean_gap": 0.0}, "mean_gap must be a number above 0"),
        (states, {"noise": -0.1}, "noise must be"),
        (states, {"missing": 1.5}, "missing must be a share"),
        (states, {"start_angle": -1.0}, "start_angle must be"),
        (states, {"lengths": (2.0, 1.0)}, "lengths must be two positive numbers"),
        (states, {"friction": -0.1}, "friction must be"),
    ],
)
def test_settings_out_of_range_are_named(make, wrong, message):
    with pytest.raises(ConfigError, match=message):
        make(**wrong)


@pytest.mark.usefixtures("without_type_checks")
def test_an_unknown_integrator_is_refused():
    with pytest.raises(ConfigError, match="integrator must be gym or accurate, but is 'euler'"):
        frames(integrator="euler")  # type: ignore[arg-type]


def test_protocols_make_panels():
    assert DATASET.system == DATASET.name == "pendulum"
    assert list(DATASET.protocols) == ["paper", "strict", "states"]
    tiny = {"series": (1, 1, 1), "steps": 3}
    assert DATASET.protocols["paper"](**tiny).train.panel.values.max() <= 1
    assert DATASET.protocols["strict"](**tiny).train.panel.values.max() > 1
    assert DATASET.protocols["states"](series=(1, 1, 1), rows=3).train.panel.channels == ("theta",)
