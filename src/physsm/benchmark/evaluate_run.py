"""Scores of a stored run and its baselines on a table, or on the test part of a data set."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from physsm._errors import ConfigError, DataError
from physsm.benchmark.evaluate import Score, beside, evaluate, score_all
from physsm.benchmark.evaluation_windows import windows_of_test_part
from physsm.benchmark.named_data import NamedData, units_of
from physsm.benchmark.run_folder import data_of, is_table_of, load_baselines, run_sizes
from physsm.data.window import Sizes
from physsm.datasets._dataset import Split
from physsm.models._base import load


@dataclass(frozen=True, kw_only=True)
class TableScores:
    """Scores on windows of a table. `is_table_of_fit`: the run was fitted to it."""

    scores: list[Score]
    sizes: Sizes
    is_table_of_fit: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class DataSetScores:
    """Scores on the test windows of a split."""

    scores: list[Score]
    split: Split
    windows: int


def score_on_table(
    run: Path, table: Any, *, context: int | None = None, horizon: int | None = None
) -> TableScores:
    """Score a run on a table, with the window sizes of the run unless others are given."""
    model = load(run)
    sizes = run_sizes(run)
    sizes = replace(sizes, context=context or sizes.context, horizon=horizon or sizes.horizon)
    panel = model.check(table)
    return TableScores(
        scores=evaluate(model, load_baselines(run), panel, sizes).scores,
        sizes=sizes,
        is_table_of_fit=is_table_of(run, panel),
    )


def score_on_data_set(run: Path, named: NamedData, data_dir: Path | None) -> DataSetScores:
    """Score a run on the test part of a data set. A run that was fitted to the same data set under
    another protocol is refused, because it may have seen test samples.
    """
    model = load(run)
    name, fitted_to = named.name, data_of(run)
    if fitted_to and fitted_to != name and fitted_to.split(":")[0] == named.dataset.name:
        raise ConfigError(
            f"the run was fitted to {fitted_to}, whose training part may hold test samples of "
            f"{name}: fit to that with physsm fit {name} --out RUN"
        )
    split = named.split(data_dir)
    if model.interface.channels != split.test.panel.channels:
        raise DataError(
            f"the channels of {named.dataset.name} differ from those of the table of the fit",
            hint=f"fit to it: physsm fit {name} --out RUN",
        )
    windows = windows_of_test_part(split)
    models = beside(model, load_baselines(run))
    return DataSetScores(
        scores=score_all(models, windows, units_of(named.dataset)).scores,
        split=split,
        windows=len(windows.history),
    )
