"""The overview: what is drawn, what is said to be left out, and files that appear whole."""

import re

import numpy as np
import pytest

from physsm._errors import ConfigError, RunError
from physsm._values import Layout, Panel, Series
from physsm.report.overview_plot import (
    MAX_COLUMNS,
    MAX_SERIES,
    _outline,
    plot_overview,
    write_overview,
)
from physsm.report.svg import drawing


def make(series: int = 2, rows: int = 20, channels: int = 2, controls: int = 1, **details) -> Panel:
    rng = np.random.default_rng(0)
    made = [
        Series(
            f"s{i}",
            np.cumsum(rng.uniform(0.1, 1, rows)),
            rng.normal(size=(rows, channels)),
            rng.normal(size=(rows, controls)),
        )
        for i in range(series)
    ]
    names = [f"x{k}" for k in range(channels)], [f"u{k}" for k in range(controls)]
    return Panel.from_series(made, *names, **details)


def titles(figure) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes]


def note(figure) -> str:
    """What the title says beside the name."""
    return figure.get_suptitle().removeprefix("Name").removeprefix(". ")


def test_each_column_has_a_plot_with_its_unit():
    with drawing():
        figure = plot_overview(make(), title="Name", units={"x1": "m", "u0": "N"})
    assert titles(figure) == ["x0", "x1 (m)", "u0 (N), control"]
    assert [len(axes.get_lines()) for axes in figure.axes] == [2, 2, 2]
    assert note(figure) == ""
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["s0", "s1"]
    assert len({line.get_color() for line in figure.axes[0].get_lines()}) == 2


def test_what_is_left_out_is_said():
    with drawing():
        figure = plot_overview(make(series=9, channels=784, rows=3), title="Name")
    assert len(figure.axes) == MAX_COLUMNS
    assert titles(figure)[0] == "x0"
    assert titles(figure)[-2] == "x783"
    assert "control" in titles(figure)[-1]
    assert len(figure.axes[0].get_lines()) == MAX_SERIES
    assert note(figure) == "Drawn: 5 of 9 series, 11 of 784 channels."


def test_channels_come_before_controls_which_have_some_room():
    with drawing():
        figure = plot_overview(make(channels=11, controls=5), title="Name")
    assert titles(figure)[0] == "x0"
    assert titles(figure)[8] == "x10"
    assert all("control" in title for title in titles(figure)[9:])
    assert note(figure) == "Drawn: 9 of 11 channels, 3 of 5 controls."


def test_cells_that_were_not_measured_are_not_drawn():
    panel = make(series=1, channels=2, controls=0)
    panel.values[0, ::2, 0] = np.nan
    panel.values[0, :, 1] = np.nan
    with drawing():
        figure = plot_overview(panel, title="")
    first, second = (axes.get_lines()[0] for axes in figure.axes)
    np.testing.assert_array_equal(first.get_xdata(), panel.times[0, 1::2])
    assert np.size(second.get_xdata()) == 0


def test_a_long_line_keeps_its_extremes_and_ends():
    times = np.arange(100_000.0)
    values = np.random.default_rng(0).normal(size=100_000)
    values[[123, 77_777]] = -50, 50
    short_times, short_values = _outline(times, values)
    assert len(short_times) <= 1002
    assert (short_times[0], short_times[-1]) == (times[0], times[-1])
    assert (short_values.min(), short_values.max()) == (-50, 50)
    assert (np.diff(short_times) > 0).all()
    np.testing.assert_array_equal(values[short_times.astype(int)], short_values)


def test_datetimes_say_since_when():
    layout = Layout(time="date", origin="2024-01-01T00:00:00", time_unit="d")
    with drawing():
        figure = plot_overview(make(layout=layout), title="")
    assert figure.axes[-1].get_xlabel() == "date (d since 2024-01-01T00:00:00)"


def test_files(tmp_path):
    panel = make()
    write_overview(panel, tmp_path / "a.png", title="x")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    write_overview(panel, tmp_path / "a.SVG", title="x_$1$ & <b>")
    text = (tmp_path / "a.SVG").read_text()
    assert re.search(r">x_\$1\$ &amp; &lt;b&gt;<", text)
    write_overview(panel, tmp_path / "b.svg", title="x_$1$ & <b>")
    assert (tmp_path / "b.svg").read_text() == text


def test_files_that_cannot_be_written(tmp_path):
    with pytest.raises(ConfigError, match=r"choose \.png or \.svg"):
        write_overview(make(), tmp_path / "a.pdf", title="x")
    with pytest.raises(RunError, match=r"a\.png cannot be written"):
        write_overview(make(), tmp_path / "none" / "a.png", title="x")
