import numpy as np
import pytest

from physsm._errors import DataError
from physsm._values import Forecast, Panel, Series


def example() -> tuple[Forecast, Panel]:
    times = np.linspace(0, 1, 5)
    history = Panel.from_series(
        [Series("a", times, np.stack([times, -times], 1), np.zeros((5, 0)))], ["x", "y"]
    )
    mean = np.ones((1, 3, 2))
    forecast = Forecast(
        ids=("a",),
        times=np.array([[1.1, 1.2, 1.3]]),
        lengths=np.array([3]),
        channels=("x", "y"),
        mean=mean,
        lower=mean - 1,
        upper=mean + 1,
        coverage=0.9,
    )
    return forecast, history


def test_plot_shows_measurements_forecast_and_interval(tmp_path):
    forecast, history = example()
    figure = forecast.plot(history)
    assert [axes.get_ylabel() for axes in figure.axes] == ["x", "y"]
    assert figure.axes[-1].get_xlabel() == "time"
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert labels == ["90% interval", "forecast", "measured"]
    figure.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 1000


def test_frame_has_a_column_for_each_bound():
    forecast, _ = example()
    frame = forecast.to_frame()
    assert frame.columns == ["time", "x", "x_lower", "x_upper", "y", "y_lower", "y_upper"]
    assert frame["x_upper"].to_list() == [2.0, 2.0, 2.0]


def test_unknown_series_are_refused():
    forecast, history = example()
    with pytest.raises(DataError, match="no series 3"):
        forecast.plot(series=3)
    other = Panel.from_series([history[0]._replace(id="b")], ["x", "y"])
    with pytest.raises(DataError, match="no series a"):
        forecast.plot(other)
