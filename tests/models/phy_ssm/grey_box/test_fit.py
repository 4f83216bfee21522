"""Fits of texts whose unknowns are constant: no training, true constants, equal forecasts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from physsm import PhySSM, System, _programs, load
from physsm._errors import TrainingError
from physsm._values import Forecast, Panel, Query, Series
from physsm.benchmark.report_data import unknown_rows
from physsm.models._network.unknowns import in_physical_units
from physsm.models.grey_box import GreyBox
from physsm.models.phy_ssm.forecaster import FittedPhySSM
from physsm.models.phy_ssm.grey_box.candidates import Judge
from tests.models.phy_ssm.grey_box.make import DAMPING, STIFFNESS, TEXT, oscillators

CUT = 60  # rows of a history
SETTINGS = {
    **PhySSM.test_settings(),
    "context": 30,
    "horizon": 15,
    "substeps": 2,
    # As in the model grey_box: both share their programs then.
    "linear_bypass": False,
    "unknown_network": "none",
}


def noisy_panel(seed: int) -> Panel:
    return oscillators(seed, (80,) * 10, error=0.05)[0]


def transformed(panel: Panel) -> Panel:
    """The same in milliseconds on a shifted clock, in other units, in another order.

    The clock is shifted by 1e9 s: times then have 1e-7 s of rounding, a millionth of a gap.
    """
    milliseconds = 1000 * (panel.times + 1e9)
    other = replace(panel, times=milliseconds, values=7.3 * panel.values)
    return other.select(ORDER)


ORDER = np.array([3, 9, 0, 1, 8, 2, 5, 4, 7, 6])


def forecast(fitted: Any, panel: Panel, coverage: float | None = 0.9) -> Forecast:
    history = panel.between(0, CUT)
    future = panel.between(CUT, 80)
    query = Query(future.times, future.controls, future.lengths)
    return fitted.forecast(history, times=query, coverage=coverage)


@pytest.fixture(scope="module")
def fitted():
    return PhySSM(System.parse(TEXT), **SETTINGS).fit(noisy_panel(0), noisy_panel(1), seed=0)


def test_a_network_that_is_better_by_chance_alone_is_dropped(monkeypatch):
    text = TEXT.replace("unknown ?k, ?c constant", "unknown ?c constant")
    settings = {**SETTINGS, "unknown_network": "mlp", "substeps": 1, "refit": False}
    settings |= {"training": {"steps": 40, "batch_size": 8, "validations": 4}}
    asked = []

    def refuse(self: Judge, trained: Any, start: Any) -> bool:
        asked.append((self.error(trained), self.error(start)))
        return False

    monkeypatch.setattr(Judge, "prefers", refuse)
    fitted = PhySSM(System.parse(text), **settings).fit(noisy_panel(0), noisy_panel(1), seed=0)
    trained, start = asked[-1]  # after that of the start and the grey box
    assert [(stage.name, stage.kept) for stage in fitted.stages][-1] == ("network", False)
    assert fitted.training is not None
    assert fitted.training.progress.best_step == 0
    assert trained != start == pytest.approx(fitted.stages[1].error, rel=1e-3)
    # Its value is that of the grey box; how certain it is, this model does not know.
    unknowns = fitted.unknowns(noisy_panel(2))
    std = unknowns.std[..., unknowns.names.index("k")]
    assert np.isnan(std).all()
    (row,) = [row for row in unknown_rows(System.parse(text), unknowns, {}) if row["name"] == "k"]
    assert row["kind"] == "varying"
    assert np.isnan([row["lower"], row["upper"]]).all()


def test_its_stages_are_named_and_there_is_no_training(fitted):
    assert [stage.name for stage in fitted.stages] == ["start", "grey box"]
    assert all(0 < stage.error < 0.2 for stage in fitted.stages)
    assert fitted.training is None
    assert fitted.network.config.substeps == SETTINGS["substeps"]


def test_constants_are_recovered_with_a_hidden_velocity(fitted):
    unknowns = forecast(fitted, noisy_panel(2)).unknowns
    assert unknowns is not None
    k, c = unknowns[0, 0]
    assert abs(k / STIFFNESS - 1) < 0.05
    assert abs(c / DAMPING - 1) < 0.05
    # Within a few standard errors, which are smaller than that.
    assert abs(k - STIFFNESS) < 4 * fitted.constants_std[0] < 0.2
    assert abs(c - DAMPING) < 4 * fitted.constants_std[1] < 0.2


def test_forecasts_are_as_good_as_the_measurements(fitted):
    found = forecast(fitted, noisy_panel(2))
    truth = noisy_panel(2).values[:, CUT:]
    assert np.sqrt(np.mean((found.mean - truth) ** 2)) < 0.07
    inside = (found.lower <= truth) & (truth <= found.upper)
    assert 0.8 < inside.mean() < 0.98


def test_a_stored_model_forecasts_the_same(fitted, tmp_path):
    fitted.save(tmp_path)
    stored = load(tmp_path)
    assert isinstance(stored, FittedPhySSM)
    assert stored.stages == fitted.stages
    assert stored.constants_std == fitted.constants_std
    found, wanted = forecast(stored, noisy_panel(2)), forecast(fitted, noisy_panel(2))
    for part in ("mean", "lower", "upper"):
        np.testing.assert_array_equal(getattr(found, part), getattr(wanted, part))


def test_a_stream_forecasts_like_its_history(fitted):
    panel = noisy_panel(2)
    stream, one = fitted.start(), panel[4]
    for t, x in zip(one.times[:CUT], one.values[:CUT], strict=True):
        stream = fitted.update(stream, t, x)
    found = fitted.forecast_stream(stream, times=one.times[CUT:], coverage=None)
    wanted = forecast(fitted, panel)
    np.testing.assert_allclose(found.mean[0], wanted.mean[4], rtol=1e-4, atol=1e-4)


@pytest.fixture(scope="module")
def programs_of_another_table():
    """Those that the fit of `fitted_otherwise` adds to those before."""
    return []


@pytest.fixture(scope="module")
def fitted_otherwise(fitted, programs_of_another_table):
    panels = transformed(noisy_panel(0)), transformed(noisy_panel(1))
    before = set(_programs._compiled)
    other = PhySSM(System.parse(TEXT), **SETTINGS).fit(*panels, seed=0)
    programs_of_another_table.extend(set(_programs._compiled) - before)
    return other


def test_another_table_of_the_same_shape_compiles_nothing(
    fitted_otherwise, programs_of_another_table
):
    assert not programs_of_another_table


def test_units_clock_and_order_of_a_table_do_not_matter(fitted, fitted_otherwise):
    found = forecast(fitted_otherwise, transformed(noisy_panel(2)), coverage=None)
    wanted = forecast(fitted, noisy_panel(2))
    moved = found.mean / 7.3 - wanted.mean[ORDER]
    assert np.abs(moved).max() < 1e-3 * np.abs(wanted.mean).max()
    assert found.unknowns is not None
    assert wanted.unknowns is not None
    k, c = wanted.unknowns[0, 0]
    np.testing.assert_allclose(found.unknowns[0, 0], [k / 1e6, c / 1e3], rtol=1e-3)
    std = np.array(fitted.constants_std) / [1e6, 1e3]
    np.testing.assert_allclose(fitted_otherwise.constants_std, std, rtol=1e-3)


def test_the_grey_box_is_the_same_fit(fitted, fitted_otherwise):
    for wanted, change in ((fitted, lambda panel: panel), (fitted_otherwise, transformed)):
        panels = change(noisy_panel(0)), change(noisy_panel(1))
        box = GreyBox(System.parse(TEXT), **SETTINGS).fit(*panels, seed=0)
        assert box.name == "grey_box"
        assert box.training is None
        assert box.stages == wanted.stages
        for key, array in box.arrays().items():
            np.testing.assert_array_equal(array, wanted.arrays()[key], err_msg=key)


@pytest.mark.parametrize(
    "text",
    [
        "x' = -?a*sqrt(x)\nunknown ?a constant\nobserve x",
        "x' = -?a*z\nz' = -?b*sqrt(-z*z - 1)\nunknown ?a, ?b constant\nobserve x",  # z is hidden
    ],
)
def test_a_text_that_cannot_be_simulated_says_so(text):
    """A root of numbers that are all negative."""
    panel = noisy_panel(0)
    below = replace(panel, values=panel.values - 100)
    model = PhySSM(System.parse(text), **SETTINGS)
    with pytest.raises(TrainingError, match=r"cannot be simulated.*The state [xz] is not finite"):
        model.fit(below.select(ORDER[:6]), below.select(ORDER[6:]), seed=0)


def lags(zero: float) -> Panel:
    """Temperatures, in kelvins above a zero, that follow that of the surroundings by a lag of one
    time unit.
    """
    rng, series = np.random.default_rng(0), []
    for i in range(8):
        gaps = rng.uniform(0.05, 0.15, 80)
        outside = np.repeat(rng.uniform(285, 295, 10), 8)
        inside = np.empty(80)
        inside[0] = rng.uniform(285, 295)
        for row in range(79):
            inside[row + 1] = outside[row] + (inside[row] - outside[row]) * np.exp(-gaps[row])
        inside += 0.05 * rng.standard_normal(80)
        times = np.cumsum(np.append(0, gaps[:-1]))
        series.append(Series(str(i), times, inside[:, None] - zero, outside[:, None] - zero))
    return Panel.from_series(series, ["inside"], ["outside"])


def test_the_zero_of_a_unit_does_not_matter():
    """Nor that a mean is far larger than what varies: constants are as large as they need to be."""
    text = "control outside\ninside' = ?a*outside - ?b*inside\nobserve inside\n"
    settings = {**SETTINGS, "substeps": 4}
    found = []
    for zero in (0.0, 273.15):
        panel = lags(zero)
        train, validation = panel.select(np.arange(6)), panel.select(np.arange(6, 8))
        model = GreyBox(System.parse(text + "unknown ?a, ?b constant"), **settings)
        network = model.fit(train, validation, seed=0).network
        found.append(in_physical_units(network.unit.system, network.scales, network.unit.constants))
    np.testing.assert_allclose(found, 1, rtol=0.02)
    np.testing.assert_allclose(found[0], found[1], rtol=2e-3)
