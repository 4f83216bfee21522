"""One target with all around it, as a plot shows it."""

import numpy as np
import pytest

from physsm._errors import DataError
from physsm.datasets._nuscenes_view import view_scene
from physsm.report.scene_plot import plot_scene
from tests.datasets.nuscenes_samples import real_data


def test_a_target_is_seen_from_its_own_place():
    view = view_scene("scene-0103", None, real_data())
    np.testing.assert_allclose(view.context[-1], 0, atol=1e-9)
    assert np.nanmin(view.context[:, 0]) < -2  # it came from behind
    assert np.nanmax(view.future[:, 0]) > 20  # and drives on ahead
    assert len(view.others) >= 3
    near = np.concatenate(view.map_lines)
    assert np.linalg.norm(near, axis=1).min() < 5  # it is on a road
    plot_scene(view.context, view.future, others=view.others, map_lines=view.map_lines)


def test_an_unknown_track_names_the_known():
    with pytest.raises(DataError, match=r"no target 'nobody': there are \d"):
        view_scene("scene-0103", "nobody", real_data())
