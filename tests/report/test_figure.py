import itertools
import re
import subprocess
import sys
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from physsm._palette import line_styles
from physsm.report.contents import Number
from physsm.report.figure import forecast_figure, training_figure, unknowns_figure
from physsm.report.markup import number, power_of_ten, share
from tests.examples import examples
from tests.report.sample import sample_contents

STYLES = line_styles(["arx", "repeat_last", "linear_trend"])
ANY_NUMBER = st.none() | st.floats() | st.integers()


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter("text")]


def markers(svg: str, fill: str) -> list[tuple[float, float]]:
    """Where the dots of one fill stand, in points from the top left."""
    return [
        (float(use.attrib["x"]), float(use.attrib["y"]))
        for use in ElementTree.fromstring(svg).iter("use")
        if f"fill: {fill}" in use.get("style", "")
    ]


def test_each_measurement_is_one_dot():
    example = sample_contents()["examples"][0]
    example["channels"] = example["channels"][:1]
    svg = forecast_figure(example, "time (s)", STYLES, "f").svg
    (channel,) = example["channels"]
    assert len(markers(svg, "#333333")) == sum(v is not None for v in channel["context_values"])
    assert len(markers(svg, "#ffffff")) == len(channel["target_values"])


def test_dots_stand_where_the_measurements_are():
    example = sample_contents()["examples"][0]
    example["channels"] = example["channels"][:1]
    svg = forecast_figure(example, "time (s)", STYLES, "f").svg
    (channel,) = example["channels"]
    dots = np.array(markers(svg, "#ffffff"))
    # A linear map of times and values to the page explains the dots to the last digit.
    for place, values, sign in ((0, "target_times", 1), (1, "target_values", -1)):
        slope, start = np.polyfit(np.array(channel[values]), dots[:, place], 1)
        np.testing.assert_allclose(
            slope * np.array(channel[values]) + start, dots[:, place], atol=1e-4
        )
        assert np.sign(slope) == sign


def test_the_boundary_is_where_the_observations_end():
    example = sample_contents()["examples"][0]
    svg = forecast_figure(example, "time (s)", STYLES, "f").svg
    seen, kept = markers(svg, "#333333"), markers(svg, "#ffffff")
    observed, forecast = (
        float(element.attrib["x"])
        for element in ElementTree.fromstring(svg).iter("text")
        if element.text in ("← observed", "forecast →")
    )
    assert (observed + forecast) / 2 >= max(x for x, _ in seen)
    assert (observed + forecast) / 2 <= min(x for x, _ in kept)


def test_without_a_boundary_there_is_no_label():
    example = sample_contents()["examples"][0]
    example["boundary"] = None
    assert "← observed" not in texts(forecast_figure(example, "t", STYLES, "f").svg)


@pytest.mark.parametrize("direction", [1e30, -1e30])
def test_a_forecast_that_runs_away_leaves_the_measurements_readable(direction):
    example = sample_contents()["examples"][0]
    example["channels"] = example["channels"][:1]
    (channel,) = example["channels"]
    channel["others"] = {}
    calm = forecast_figure(example, "t", STYLES, "f")
    channel["mean"] = [direction * i for i in range(len(channel["mean"]))]
    wild = forecast_figure(example, "t", STYLES, "f")
    assert calm.notes == []
    assert wild.notes == ["Lines leave the panel in: theta."]
    heights = [np.ptp([y for _, y in markers(d.svg, "#333333")]) for d in (calm, wild)]
    assert heights[1] > 0.3 * heights[0]


def test_large_numbers_move_their_power_of_ten_into_the_title():
    example = sample_contents()["examples"][0]
    example["channels"] = example["channels"][:1]
    (channel,) = example["channels"]
    for key in ("context_values", "target_values", "mean", "lower", "upper"):
        channel[key] = [None if v is None else 1e9 * v for v in channel[key]]
    shown = texts(forecast_figure(example, "time (s)", STYLES, "f").svg)
    assert "theta (×10⁹ rad)" in shown
    assert max(len(text) for text in shown if re.fullmatch(r"[−\d.]+", text)) <= 5


def test_truth_is_drawn_only_where_it_is_known():
    example = sample_contents()["examples"][0]
    with_truth = unknowns_figure(example, "t", "u").svg
    example["unknowns"][0]["true"] = None
    assert with_truth.count("stroke-dasharray") - 1 == unknowns_figure(example, "t", "u").svg.count(
        "stroke-dasharray"
    )


@pytest.mark.parametrize("lossy", ["positive", "negative", "constant", "missing"])
def test_losses_of_any_sign_are_drawn(lossy):
    training = sample_contents()["training"]
    assert training
    for point in training["curve"]:
        loss = point["loss"]
        assert loss is not None
        changed: dict[str, Number] = {
            "positive": loss,
            "negative": loss - 2.0,
            "constant": 1.0,
            "missing": None,
        }
        point["loss"] = point["validation"] = changed[lossy]
    labels = texts(training_figure(training, "t").svg)
    decades = [float(t.replace("−", "-")) for t in labels if re.fullmatch(r"−?[\d.]+", t)]
    assert len(decades) >= 6
    assert ({0.1, 1.0, 0.2, 2.0} <= set(decades)) == (lossy == "positive")


def test_the_best_step_is_marked():
    training = sample_contents()["training"]
    assert training
    root = ElementTree.fromstring(training_figure(training, "t").svg)
    (label,) = [e for e in root.iter("text") if e.text == "best step: 800"]
    ticks = {e.text: float(e.attrib["x"]) for e in root.iter("text") if e.text in ("600", "1000")}
    assert float(label.attrib["x"]) == pytest.approx(np.mean(list(ticks.values())), abs=0.01)


def test_one_training_step_is_a_dot():
    training = sample_contents()["training"]
    assert training
    training["curve"], training["best_step"] = training["curve"][:1], 0
    assert "<use" in training_figure(training, "t").svg
    training["curve"] = []
    training_figure(training, "t")


def test_a_single_forecast_time_is_visible():
    example = sample_contents()["examples"][0]
    for channel in example["channels"]:
        for key in ("forecast_times", "mean", "lower", "upper"):
            channel[key] = channel[key][:1]
        channel["others"] = {}
    svg = forecast_figure(example, "t", STYLES, "f").svg
    assert len(markers(svg, "#0072b2")) == 2


@settings(max_examples=examples(12))
@given(st.data())
def test_no_numbers_crash_a_figure(data):
    def row(length):
        return data.draw(st.lists(ANY_NUMBER, min_size=length, max_size=length))

    n, m, k = (data.draw(st.integers(0, 4)) for _ in range(3))
    example = {
        "series": "s",
        "boundary": data.draw(ANY_NUMBER),
        "channels": [
            {
                "name": "x",
                "unit": None,
                "context_times": row(n),
                "context_values": row(n),
                "target_times": row(m),
                "target_values": row(m),
                "forecast_times": row(k),
                "mean": row(k),
                "lower": row(k),
                "upper": row(k),
                "others": {"arx": row(k)},
            }
        ],
        "unknowns": [
            {
                "name": "c",
                "unit": None,
                "times": row(k),
                "mean": row(k),
                "lower": row(k),
                "upper": row(k),
                "true": row(k),
            }
        ],
    }
    losses = zip(row(n), row(n), strict=True)
    curve = [{"step": i, "loss": a, "validation": b} for i, (a, b) in enumerate(losses)]
    training = {
        "curve": curve,
        "seconds": 1.0,
        "compile_seconds": 1.0,
        "skipped_steps": 0,
        "best_step": 0,
    }
    for svg in (
        forecast_figure(example, "t", STYLES, "f").svg,  # type: ignore[arg-type]
        unknowns_figure(example, "t", "u").svg,  # type: ignore[arg-type]
        training_figure(training, "c").svg,  # type: ignore[arg-type]
    ):
        ElementTree.fromstring(svg)
        assert not re.search(r"\b(nan|inf)\b", svg)


def test_the_users_own_settings_change_nothing_and_stay():
    example = sample_contents()["examples"][0]
    plain = forecast_figure(example, "t", STYLES, "f")
    with matplotlib.rc_context({"lines.linewidth": 9, "xtick.direction": "in", "font.size": 30}):
        assert forecast_figure(example, "t", STYLES, "f") == plain
        assert matplotlib.rcParams["lines.linewidth"] == 9
    assert matplotlib.rcParams["svg.fonttype"] == matplotlib.rcParamsDefault["svg.fonttype"]


def test_pyplot_is_not_needed():
    code = "import sys, physsm.report.page; assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_fifteen_styles_differ():
    styles = line_styles(f"model{i}" for i in range(15))
    assert len(set(styles.values())) == 15
    near = itertools.pairwise(styles.values())
    assert all(a.colour != b.colour and a.dash != b.dash for a, b in near)


@given(st.floats(-1e300, 1e300))
def test_numbers_keep_four_digits(value):
    text = number(value).replace("−", "-")
    if "×" in text:
        superscripts = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
        mantissa, power = text.split("×10")
        text = f"{mantissa}e{power.translate(superscripts)}"
    assert float(text) == pytest.approx(value, rel=5.01e-4, abs=0)


def test_powers_of_ten_are_raised():
    assert power_of_ten(-10) == "10⁻¹⁰"
    assert power_of_ten(23456789) == "10²³⁴⁵⁶⁷⁸⁹"


def test_shares_are_percentages():
    assert share(0.9) == "90\u00a0%"
    assert share(None) == "–"
