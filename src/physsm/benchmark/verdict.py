"""The verdict on a run: whether its model is of any use, or a simpler one serves better."""

from __future__ import annotations

import math
from collections.abc import Sequence

from physsm.benchmark.evaluate import BASELINES, Score
from physsm.metrics._metric import ranking_score

_FLOOR = "mean"
_CLEARLY = 2.0  # times the error of a baseline
_TRY = (
    "try a shorter horizon (--horizon), bounds on the unknowns, a longer training "
    "(training.steps), or one of the baselines"
)


def verdict_on(scores: Sequence[Score], part: str) -> str | None:
    """A sentence if the first model is worse than the mean of each channel, or far worse than a
    baseline that knows no equations; else None. `part` names the windows of the scores.
    """
    model, others = scores[0], {row["model"]: row for row in scores[1:]}
    ranking = ranking_score(set(model))
    if ranking is None:
        return None

    def loss(row: Score) -> float:
        value = _value(row.get(ranking.key))
        return math.inf if value is None else ranking.loss(value)

    def shown(row: Score) -> str:
        value = _value(row.get(ranking.key))
        return "not a number" if value is None else f"{value:.3g}"

    floor = others.get(_FLOOR)
    if floor is not None and loss(model) > loss(floor):
        return (
            f"{model['model']} is worse than a constant, the mean of each channel, on {part}: its "
            f"{ranking.heading} is {shown(model)}, that of mean {shown(floor)}. Do not use its "
            f"forecasts; {_TRY}."
        )
    plain = [row for name, row in others.items() if name in BASELINES]
    best = min(plain, key=loss, default=None)
    if best is None or not _CLEARLY * loss(best) < loss(model):
        return None
    return (
        f"{best['model']} is far better than {model['model']} on {part}: its {ranking.heading} is "
        f"{shown(best)}, that of {model['model']} {shown(model)}. If there are equations, check "
        f"their signs, terms and bounds; or use {best['model']}."
    )


def _value(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
