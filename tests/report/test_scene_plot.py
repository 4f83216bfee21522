import numpy as np
import pytest
from matplotlib.collections import LineCollection

from physsm._errors import DataError
from physsm.report.scene_plot import plot_scene


def example():
    steps = np.arange(21.0)
    context = np.stack([steps - 20, 0 * steps], axis=1)
    context[5] = np.nan
    future = np.stack([np.arange(1.0, 61), 0.01 * np.arange(60) ** 2], axis=1)
    others = [future + 5, np.full((4, 2), np.nan), context - 4]
    lane = np.stack([np.linspace(-50, 80, 14), np.full(14, 2.0)], axis=1)
    return context, future, others, [lane, lane - 4]


def test_a_scene_shows_map_agents_target_and_forecasts(tmp_path):
    context, future, others, lanes = example()
    figure = plot_scene(
        context,
        future,
        others=others,
        map_lines=lanes,
        forecasts={"straight": future * np.array([1.0, 0.0]), "still": 0 * future},
        title="scene-0001/1@4",
    )
    (axes,) = figure.axes
    labels = axes.get_legend_handles_labels()[1]
    assert labels == ["other agents", "actual track", "seen", "straight", "still", "now"]
    assert axes.get_aspect() == 1
    assert axes.get_xlabel().endswith("(m)")
    assert axes.get_ylabel().endswith("(m)")
    lines = [one for one in axes.collections if isinstance(one, LineCollection)]
    assert [len(one.get_paths()) for one in lines] == [2, 3]
    assert axes.get_title(loc="left") == "scene-0001/1@4"
    figure.savefig(tmp_path / "scene.png")
    assert (tmp_path / "scene.png").stat().st_size > 5000


def test_the_view_holds_the_target_and_what_is_forecast():
    context, future, others, lanes = example()
    far = {"far": future + np.array([0.0, 100.0])}
    axes = plot_scene(context, future, others=others, map_lines=lanes, forecasts=far).axes[0]
    assert axes.get_xlim()[0] < -20
    assert axes.get_xlim()[1] > 60
    assert axes.get_ylim()[1] > 134


def test_a_target_that_stands_still_can_be_drawn():
    figure = plot_scene(np.zeros((1, 2)), np.zeros((0, 2)))
    assert figure.axes[0].get_legend_handles_labels()[1] == ["actual track", "seen", "now"]
    figure.canvas.draw()


def test_what_cannot_be_drawn_is_said(without_type_checks):
    context, future, _, lanes = example()
    with pytest.raises(DataError, match=r"others\[0\] must have the shape"):
        plot_scene(context, future, others=[np.zeros((3, 3))])
    with pytest.raises(DataError, match=r"map_lines\[1\] holds an infinite"):
        plot_scene(context, future, map_lines=[lanes[0], lanes[0] + np.inf])
    with pytest.raises(DataError, match="no measured row"):
        plot_scene(context * np.nan, future)
