"""Output of `physsm evaluate`: scores as JSON content, and sentences that explain them."""

from __future__ import annotations

from typing import Any

from physsm._json import plain
from physsm.benchmark.evaluate import Score
from physsm.benchmark.evaluate_run import DataSetScores, TableScores
from physsm.benchmark.named_data import NamedData
from physsm.benchmark.verdict import verdict_on


def table_content(found: TableScores) -> dict[str, Any]:
    """Scores on a table as plain values."""
    return {
        "warnings": _warnings(found.scores, "these windows"),
        "rows": plain(found.scores),
        "context": found.sizes.context,
        "horizon": found.sizes.horizon,
        "is_table_of_the_fit": found.is_table_of_fit,
    }


def table_sentences(found: TableScores) -> list[str]:
    """Unit and windows of scores on a table, and a warning about the table of the fit."""
    sentences = [
        "Errors are in standard deviations of the training part: one time step ahead (interp), and "
        f"over a horizon of {found.sizes.horizon} time steps after a context of at most "
        f"{found.sizes.context} (extrap)."
    ]
    if found.is_table_of_fit:
        sentences.append(
            "This is the table of the fit, and the model was trained on most of it: errors on "
            "other series will be larger. The run's own report shows the validation part."
        )
    return sentences


def data_set_content(named: NamedData, found: DataSetScores) -> dict[str, Any]:
    """Scores on a test part as plain values."""
    return {
        "warnings": _warnings(found.scores, "the test part"),
        "rows": plain(found.scores),
        "dataset": named.dataset.name,
        "protocol": named.protocol,
        "context": found.split.sizes.context,
        "horizon": found.split.test_horizon,
        "test_windows": found.windows,
        "unit_of_errors": found.split.unit_words,
        "notes": list(found.split.notes),
    }


def data_set_sentences(named: NamedData, found: DataSetScores) -> list[str]:
    """Unit and windows of scores on a test part, and the notes of its protocol."""
    split = found.split
    horizon, reach = split.test_horizon, split.in_domain
    sentences = [
        f"{found.windows} test windows of {named.dataset.name}, {named.protocol} protocol: one "
        f"time step ahead (interp), and over a horizon of {horizon} time steps after a "
        f"context of {split.sizes.context} (extrap). Errors are in units of {split.unit_words}."
    ]
    if split.tracks:
        late = "" if reach in (None, horizon) else ", those called late after these"
        sentences.append(
            f"ADE and FDE, in m, are of positions in the first {reach or horizon} time steps{late}."
        )
    return [*sentences, *split.notes]


def _warnings(scores: list[Score], part: str) -> list[str]:
    verdict = verdict_on(scores, part)
    return [] if verdict is None else [verdict]
