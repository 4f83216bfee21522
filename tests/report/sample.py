"""A realistic evaluation: a damped pendulum, measured with noise and gaps, and its forecast."""

from __future__ import annotations

import numpy as np

from physsm.report.contents import (
    ChannelExample,
    Contents,
    CurvePoint,
    Example,
    Number,
    ScoreRow,
    UnknownValue,
)

BOUNDARY = 8.0


def sample_contents() -> Contents:
    rng = np.random.default_rng(0)
    return {
        "format": 1,
        "title": "Driven pendulum",
        "model": "phy_ssm",
        "version": "0.1.0",
        "created": "2025-06-01T12:00:00Z",
        "physics": {
            "text": "# driven pendulum\ncontrol torque\ntheta' = omega\n"
            "omega' = ?g*sin(theta) + ?c*omega + ?k*torque\n?c <= 0\n",
            "equations": [
                {"written": "theta' = omega", "learned": "theta' = omega"},
                {
                    "written": "omega' = ?g*sin(theta) + ?c*omega + ?k*torque",
                    "learned": "omega' = -9.76*sin(theta) - 0.152*omega + 2.94*torque",
                },
            ],
            "unknowns": [
                _unknown("g", "1/s²", -9.764, -9.91, -9.61, -9.81),
                _unknown("c", "1/s", -0.152, -0.171, -0.133, -0.15),
                _unknown("k", None, 2.94, 2.81, 3.07, None),
            ],
        },
        "data": {
            "series": 24,
            "rows": 4812,
            "channels": ["theta", "omega"],
            "controls": ["torque"],
            "missing_share": 0.118,
            "median_gap": 0.05,
            "time_label": "time (s)",
            "fingerprint": "sha256:6f1c2a9e0b7d4c53",
        },
        "scores": [
            _score("repeat_last", 0.0812, 0.01321, 0.7423, 0.8931, None),
            _score("phy_ssm", 0.0514, 0.00421, 0.0987, 0.01634, 0.883),
            _score("arx", 0.0468, 0.00398, 0.2214, 0.09127, 0.941),
            _score("linear_trend", 0.0655, 0.00784, 3.482, 19.77, None),
        ],
        "coverage_wanted": 0.9,
        "examples": [_example("s07", 0.0, rng), _example("s19", 0.9, rng)],
        "training": {
            "curve": _curve(rng),
            "seconds": 148.2,
            "compile_seconds": 13.4,
            "skipped_steps": 1,
            "best_step": 800,
        },
        "settings": {
            "preset": "default",
            "seed": 0,
            "learning_rate": 0.003,
            "hidden_sizes": [64, 64],
            "grounded_decoder": True,
            "horizon": None,
        },
        "warnings": ["Series s19 has no measurement of omega between 3.1 and 4.0."],
    }


def with_channels(amount: int) -> Contents:
    """The sample with its first channel repeated under other names."""
    contents = sample_contents()
    first = contents["examples"][0]["channels"][0]
    contents["examples"][0]["channels"] = [{**first, "name": f"channel{i}"} for i in range(amount)]
    return contents


def _unknown(
    name: str, unit: str | None, value: float, lower: float, upper: float, true: float | None
) -> UnknownValue:
    return {
        "name": name,
        "kind": "constant",
        "unit": unit,
        "value": value,
        "lower": lower,
        "upper": upper,
        "true": true,
    }


def _score(model: str, *scores: float | None) -> ScoreRow:
    interp_mae, interp_mse, extrap_mae, extrap_mse, coverage = scores
    return {
        "model": model,
        "interp_mae": interp_mae,
        "interp_mse": interp_mse,
        "extrap_mae": extrap_mae,
        "extrap_mse": extrap_mse,
        "coverage": coverage,
    }


def _example(series: str, phase: float, rng: np.random.Generator) -> Example:
    rate, damping = 3.1, 0.075

    def theta(t: np.ndarray) -> np.ndarray:
        return 1.2 * np.exp(-damping * t) * np.cos(rate * t + phase)

    def omega(t: np.ndarray) -> np.ndarray:
        swing = np.sin(rate * t + phase)
        return -1.2 * rate * np.exp(-damping * t) * swing - damping * theta(t)

    future = np.arange(BOUNDARY, 20.0, 0.05)
    drift = 0.02 * (future - BOUNDARY)
    unknown_times = np.arange(0.0, 20.0, 0.1)
    friction = -0.15 - 0.03 * np.sin(0.6 * unknown_times + phase)
    spread = 0.012 + 0.002 * np.maximum(unknown_times - BOUNDARY, 0)
    learned = friction + 0.008 * np.sin(2.3 * unknown_times)
    return {
        "series": series,
        "boundary": BOUNDARY,
        "channels": [
            _channel("theta", "rad", theta, 0.06, future, drift, rng),
            _channel("omega", "rad/s", omega, 0.2, future, drift, rng),
        ],
        "unknowns": [
            {
                "name": "c",
                "unit": "1/s",
                "times": _row(unknown_times),
                "mean": _row(learned),
                "lower": _row(learned - spread),
                "upper": _row(learned + spread),
                "true": _row(friction),
            }
        ],
    }


def _channel(name, unit, truth, noise, future, drift, rng) -> ChannelExample:
    context = np.sort(rng.uniform(0.0, BOUNDARY, 110))
    target = np.sort(rng.uniform(BOUNDARY, 20.0, 130))
    values = _row(truth(context) + noise * rng.normal(size=context.size))
    missing = set(rng.choice(context.size, 12, replace=False).tolist())
    mean = truth(future - drift)
    spread = 1.64 * np.hypot(noise, 0.5 * noise * (future - BOUNDARY) ** 0.5)
    decay = np.exp(-0.35 * (future - BOUNDARY))
    return {
        "name": name,
        "unit": unit,
        "context_times": _row(context),
        "context_values": [None if i in missing else v for i, v in enumerate(values)],
        "target_times": _row(target),
        "target_values": _row(truth(target) + noise * rng.normal(size=target.size)),
        "forecast_times": _row(future),
        "mean": _row(mean),
        "lower": _row(mean - spread),
        "upper": _row(mean + spread),
        "others": {
            "arx": _row(truth(future) * decay),
            "repeat_last": _row(np.full_like(future, truth(np.array([BOUNDARY]))[0])),
            "linear_trend": _row(truth(future[:1])[0] + 0.9 * (future - BOUNDARY)),
        },
    }


def _curve(rng: np.random.Generator) -> list[CurvePoint]:
    steps = range(0, 1001, 5)
    losses = [4.0 * np.exp(-s / 160) + 0.05 + 0.02 * abs(rng.normal()) for s in steps]
    return [
        {
            "step": s,
            "loss": float(loss),
            "validation": 0.07 + 4.2 * float(np.exp(-s / 170)) + 8e-7 * max(s - 700.0, 0) ** 2
            if s % 50 == 0
            else None,
        }
        for s, loss in zip(steps, losses, strict=True)
    ]


def _row(values: np.ndarray) -> list[Number]:
    return [float(v) for v in values]
