"""Order of models by their scores."""

from __future__ import annotations

import math

from physsm.metrics._metric import Score, ranking_score
from physsm.report.contents import Number, ScoreRow
from physsm.report.markup import is_finite


def ranked(rows: list[ScoreRow]) -> list[ScoreRow]:
    """Rows with the best model first, by the score that decides; as given where none does."""
    ranking = ranking_score(score_keys(rows))
    return rows if ranking is None else sorted(rows, key=lambda row: loss(row, ranking))


def score_keys(rows: list[ScoreRow]) -> set[str]:
    """Keys that any of the rows has."""
    return {key for row in rows for key in row}


def loss(row: ScoreRow, score: Score) -> float:
    """The loss of a score; a value that is missing or not finite comes after all others."""
    value: Number = row.get(score.key)
    return math.inf if value is None or not is_finite(value) else score.loss(float(value))
