"""Forecasts before the rebuilding of `models/` and after it are the same to 1e-6.

`python -m tests.same_numbers.test_same_numbers` writes the reference; this folder is removed once
the rebuilding is done.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

from physsm import System
from physsm._arguments import merged
from physsm._registry import find, names_in
from physsm._values import Panel, Query, Series
from tests.models.toy import toy_panel

STORED = Path(__file__).parent / "before.npz"
HIDDEN = "control push\nz' = w\nw' = -?k*z - ?c*w + push**2\nunknown ?k, ?c constant"
PER_SERIES = """control force
x' = v
v' = -?stiffness*x - ?damping*v + ?gain*force
unknown ?stiffness per series
unknown ?gain constant
observe x
"""
PENDULUM = "theta' = omega\nomega' = ?*sin(theta) + ?*omega\nobserve theta"
VARIANTS = {
    "paper": ("phy_ssm", "oscillator", {"preset": "paper", "latent": 4}),
    "per_series": ("phy_ssm", PER_SERIES, {}),
    "per_series_paper": ("phy_ssm", PER_SERIES, {"preset": "paper"}),
    "encoder": ("phy_ssm", PER_SERIES, {"inference": "encoder", "control_hold": "mean"}),
    "mlp": ("phy_ssm", PER_SERIES, {"unknown_network": "mlp", "correct": True, "substeps": 2}),
    "paper_width": ("phy_ssm", PER_SERIES, {"unit": {"width": None}, "regulariser": "cosine"}),
    "bypass": ("phy_ssm", HIDDEN, {"context": 30}),
    "bypass_s5": ("s5", HIDDEN, {"linear_bypass": True, "context": 30}),
}


def mixtures(rows=80, series=6, seed=0) -> Panel:
    rng = np.random.default_rng(seed)
    made = []
    for i in range(series):
        gaps = 0.1 * (1 + 0.1 * rng.uniform(-1, 1, rows))
        push = np.cos(np.cumsum(gaps) + i)
        z, w, values = rng.standard_normal(), 0.0, []
        for gap, u in zip(gaps, push, strict=True):
            values.append([z + 0.2 * w, w - z])
            z, w = z + gap * w, w + gap * (-4 * z - 0.3 * w + u)
        made.append(Series(str(i), np.cumsum(gaps), np.array(values), push[:, None]))
    return Panel.from_series(made, ["a", "b"], ["push"])


def panels(case: str) -> tuple[Panel, Panel, Panel, np.ndarray]:
    if case.startswith("bypass"):
        return (
            mixtures(),
            mixtures(series=3, seed=1),
            mixtures(series=3, seed=2),
            np.array([40, 5, 20]),
        )
    return (
        toy_panel(1, (40, 34, 40, 28, 37, 40)),
        toy_panel(2, (40, 31, 36)),
        toy_panel(5, (40, 31, 36)),
        np.array([24, 17, 20]),
    )


def results(case: str) -> dict[str, np.ndarray]:
    train, held_out, test, boundary = panels(case)
    name, physics, settings = VARIANTS.get(case, (case, "oscillator", {}))
    model = find("models", name, "MODEL")
    system = System.load(physics) if physics == "oscillator" else System.parse(physics)
    usual = getattr(model, "test_settings", dict)()
    forecaster = model.create(system if model.physics else None, merged(usual, settings))
    fitted = forecaster.fit(train, held_out, seed=3)
    history, future = test.between(0, boundary), test.between(boundary, boundary + 8)
    query = Query(future.times, future.controls, future.lengths)
    forecast = fitted.forecast(history, times=query)
    found = {
        "mean": forecast.mean,
        "lower": forecast.lower,
        "upper": forecast.upper,
        "one_step": fitted.one_step(history).mean,
        "inside": fitted.interpolate(history).mean,
    }
    middle = np.stack([one.times[[1, 2]].mean(keepdims=True) for one in history])
    between = fitted.interpolate(history, times=middle)
    found |= {"between": between.mean, "between_upper": between.upper}
    for part in ("states", "unknowns"):
        if getattr(forecast, part) is not None:
            found[part] = getattr(forecast, part)
    if model.physics and name != "least_squares":
        try:
            unknowns = fitted.unknowns(history)
        except Exception:
            unknowns = None
        if unknowns is not None:
            found |= {"unknown_mean": unknowns.mean, "unknown_std": unknowns.std}
    if hasattr(fitted, "start"):
        stream = fitted.start()
        one = history[0]
        for t, x, u in zip(one.times, one.values, one.controls, strict=True):
            stream = fitted.update(stream, t, x, u)
        streamed = fitted.forecast_stream(stream, times=query.times[0], controls=query.controls[0])
        found |= {"stream": streamed.mean, "stream_upper": streamed.upper}
    return {key: np.asarray(value, float) for key, value in found.items()}


CASES = [*names_in("models"), *VARIANTS]


@pytest.mark.parametrize("case", CASES)
def test_the_numbers_are_those_of_before(case):
    found = results(case)
    with np.load(STORED) as stored:
        before = {
            key.split("/")[1]: stored[key] for key in stored.files if key.split("/")[0] == case
        }
    assert found.keys() == before.keys()
    for key, wanted in before.items():
        np.testing.assert_allclose(found[key], wanted, rtol=1e-6, atol=1e-6, err_msg=key)


if __name__ == "__main__":
    import jax

    jax.config.update("jax_enable_x64", True)
    everything = {}
    for case in CASES:
        everything |= {f"{case}/{key}": value for key, value in results(case).items()}
        print(case, flush=True)
    np.savez_compressed(STORED, **everything)
    sys.exit(0)
