"""Warnings of forecasts, and the refusal to save numbers that are not finite."""

from dataclasses import dataclass, replace

import equinox as eqx
import numpy as np
import pytest

from physsm._errors import RunError
from physsm._json import not_finite, to_json
from physsm._registry import find
from physsm.data.window import gather
from physsm.models._base import load
from physsm.models.phy_ssm.not_finite import explain_not_finite
from physsm.models.repeat_last import MODEL as REPEAT_LAST
from physsm.physics.system import System
from tests.models.toy import toy_panel


def fitted(**settings):
    panel = toy_panel(0, (60, 60, 50))
    return REPEAT_LAST.create(None, settings).fit(panel, toy_panel(1, (60,)), seed=0), panel


def test_a_forecast_far_beyond_the_fitted_horizon_says_so(tmp_path):
    model, panel = fitted(horizon=10)
    model.save(tmp_path)
    for one in (model, load(tmp_path)):
        assert one.fitted_horizon == 10
        gap = one.interface.median_gap
        last = panel.times[np.arange(3), panel.lengths - 1].max()

        def warnings(steps, one=one, gap=gap, last=last):
            times = last + gap * np.array([1.0, steps])
            return one.forecast(panel, times=times, controls=np.zeros((2, 1))).warnings

        (sentence,) = warnings(60)
        assert "time steps ahead; the model was fitted for 10" in sentence
    # Lead times count in units of time: many steps of a short gap are no long way.
    near = panel.select(np.array([0]))
    end = near.times[0, near.lengths[0] - 1]
    times = end + gap * np.linspace(0.1, 19.9, 200)
    assert model.forecast(near, times=times, controls=np.zeros((200, 1))).warnings == ()


def test_a_file_without_a_horizon_gives_no_warning():
    model, panel = fitted(horizon=10)
    old = replace(model, interface=replace(model.interface, horizon=None))
    times = panel.times.max() + 100.0
    controls = np.zeros((1, 1))
    assert old.forecast(panel, times=np.array([times]), controls=controls).warnings == ()


@pytest.mark.parametrize("part", ["mean", "spread"])
def test_values_that_are_not_finite_are_counted_and_named(part):
    kind = type(fitted()[0])

    @dataclass(frozen=True, eq=False, kw_only=True, repr=False)
    class Spoiled(kind):
        name = kind.name

        def _as_future(self, history, query, prediction, coverage):
            values = getattr(prediction, part).copy()
            values[1, 2:, 0] = np.nan
            spoiled = prediction._replace(**{part: values})
            return super()._as_future(history, query, spoiled, coverage)

    model, panel = fitted(horizon=30)
    spoiled = Spoiled(**vars(model))  # pyright: ignore[reportAbstractUsage]
    controls = np.zeros((3, 5, 1))
    warnings = spoiled.forecast(panel, horizon=5, controls=controls).warnings
    (sentence,) = warnings
    assert sentence.startswith("3 of 30 forecast cells, from series run 1, time ")
    assert ("values" if part == "mean" else "intervals") in sentence


def test_a_model_that_is_not_finite_is_not_saved(tmp_path):
    model, _ = fitted()
    scales = replace(model.channel_scales, scale=np.array([1.0, np.nan]))
    with pytest.raises(RunError, match="1 in the array scale"):
        replace(model, channel_scales=scales).save(tmp_path / "a")
    wrong = replace(model, calibration=type(model.calibration)(np.full((2, 201), np.inf)))
    with pytest.raises(RunError, match=r"that of calibration\[0\]\[0\]"):
        wrong.save(tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_json_has_no_word_for_what_is_not_finite():
    content = {"a": [1.0, float("nan")], "b": {"c": float("inf")}, "d": True}
    assert to_json(content) == '{"a": [1.0, null], "b": {"c": null}, "d": true}'
    assert not_finite(content) == "a[1]"
    assert not_finite({**content, "a": 1}) == "b.c"
    assert not_finite({"a": None, "b": ["x", 2]}) is None


def test_phy_ssm_says_where_a_loss_is_not_finite():
    panel = toy_panel(0, (40, 40, 40))
    text = "control force\nx' = v\nv' = -?k*x - ?c*v + force\nunknown ?k, ?c constant\n"
    kind = find("models", "phy_ssm", "MODEL")
    forecaster = kind.create(System.parse(text), kind.test_settings())
    parts = forecaster.parts(panel, toy_panel(1, (40,)))
    network = forecaster.network(parts.train.panel, parts.validation.panel, parts.sizes, 0)
    scaled = network.scales.table.scale(parts.train.panel)
    chosen = parts.train.windows[np.arange(2)]
    batch = gather(scaled, chosen, parts.sizes.context, parts.sizes.horizon, 1.0)
    says = explain_not_finite(network, batch, parts.sizes.context)
    assert says is not None
    assert says.startswith("All states are finite; the largest is ")
    broken = eqx.tree_at(lambda n: n.unit.constants, network, network.unit.constants * np.nan)
    says = explain_not_finite(broken, batch, parts.sizes.context)
    assert says is not None
    assert "is not finite from time step" in says
    assert "the largest unknown until then is k, not finite" in says
