"""The verdict on a run: whether its model is of any use."""

from __future__ import annotations

import math
from collections.abc import Sequence

from physsm.benchmark.evaluate import Score
from physsm.metrics._metric import ranking_score

_FLOOR = "mean"
_TRY = (
    "try a shorter horizon (--horizon), bounds on the unknowns, a longer training "
    "(training.steps), or one of the baselines"
)


def useless(scores: Sequence[Score], part: str) -> str | None:
    """A sentence if the first model is worse than the mean of each channel; else None. `part` names
    the windows of the scores.
    """
    model, floor = scores[0], next((s for s in scores[1:] if s["model"] == _FLOOR), None)
    ranking = ranking_score(set(model))
    if floor is None or ranking is None:
        return None
    values = [_value(row.get(ranking.key)) for row in (model, floor)]
    losses = [math.inf if value is None else ranking.loss(value) for value in values]
    if losses[0] <= losses[1]:
        return None
    own, constant = ("not a number" if value is None else f"{value:.3g}" for value in values)
    return (
        f"{model['model']} is worse than a constant, the mean of each channel, on {part}: its "
        f"{ranking.heading} is {own}, that of mean {constant}. Do not use its forecasts; "
        f"{_TRY}."
    )


def _value(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
