"""The drawn frames against Gymnasium's, processed as in the paper."""

from typing import Any

import gymnasium
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import ndimage

from physsm.datasets.pendulum import render


def gymnasium_frames(angles):
    """Red minus green, cropped, blurred and sampled as scikit-image's `resize` does, 0 to 1."""
    env: Any = gymnasium.make("Pendulum-v1", render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    frames = []
    for angle in angles:
        env.state = np.array([angle + np.pi, 0.0])
        picture = env.render().astype(float)
        crop = (picture[..., 0] - picture[..., 1])[220:-110, 165:-165]
        blurred = ndimage.gaussian_filter(crop, (170 / 28 - 1) / 2, mode="mirror")
        frames.append(ndimage.zoom(blurred, 28 / 170, order=1, mode="mirror", grid_mode=True))
    env.close()
    frames = np.stack(frames)
    return (frames - frames.min()) / (frames.max() - frames.min())


def test_looks_like_gymnasium(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    angles = np.linspace(-np.pi, np.pi, 97)
    ours, theirs = render(angles), gymnasium_frames(angles)
    difference = np.abs(ours - theirs)
    assert difference.mean() < 0.0025
    assert difference.max() < 0.15
    assert np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] > 0.9985
    each = [np.corrcoef(a.ravel(), b.ravel())[0, 1] for a, b in zip(ours, theirs, strict=True)]
    assert min(each) > 0.996


@given(st.floats(-20, 20))
def test_the_mirrored_angle_has_the_mirrored_frame(angle):
    left, right = render(np.array([-angle, angle]))
    np.testing.assert_array_equal(left, right[:, ::-1])


def test_a_full_turn_changes_nothing():
    angles = np.linspace(-3, 3, 13)
    np.testing.assert_allclose(render(angles), render(angles + 2 * np.pi), atol=1e-6)


def test_positive_angles_are_to_the_right():
    frame = render(np.array(0.5))
    assert frame[:, 14:].sum() > 3 * frame[:, :14].sum()


def test_frames_fill_zero_to_one_and_keep_the_shape_of_the_angles():
    angles = np.random.default_rng(0).uniform(-3, 3, (3, 201))  # more than are drawn at once
    frames = render(angles)
    assert frames.shape == (3, 201, 28, 28)
    assert frames.dtype == np.float32
    assert 0 <= frames.min() < 1e-6
    assert 0.999 < frames.max() <= 1
    np.testing.assert_array_equal(frames[2:, 200], render(angles[2:, 200]))
