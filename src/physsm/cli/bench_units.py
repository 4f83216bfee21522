"""Which units `physsm bench run` is asked for."""

from __future__ import annotations

from typing import cast

from physsm._errors import ConfigError, did_you_mean
from physsm.benchmark.experiment import BUDGETS, Budget, Experiment, Unit, read_experiment, units
from physsm.benchmark.unit import depends_on_seed


def chosen_units(
    table: str, budget: str, seeds: int | None, models: str | None, data: str | None
) -> tuple[str, list[Unit]]:
    """The name of a table and its units; where a seed changes nothing, seed 0 alone."""
    if budget not in BUDGETS:
        raise ConfigError(f"there is no budget {budget!r}: there are {', '.join(BUDGETS)}")
    name, experiment = read_experiment(table)
    experiment = _with_columns(experiment, data)
    rows = None if models is None else [model.strip() for model in models.split(",")]
    numbers = range(seeds or experiment.seeds)
    found = units(name, experiment, numbers, cast(Budget, budget), rows)
    return name, [unit for unit in found if unit.seed == 0 or depends_on_seed(unit)]


def _with_columns(experiment: Experiment, data: str | None) -> Experiment:
    if data is None:
        return experiment
    known = {column.name: column for column in experiment.data}
    wanted = [name.strip() for name in data.split(",")]
    for name in wanted:
        if name not in known:
            hint = did_you_mean(name, list(known)) or f"there are {', '.join(known)}"
            raise ConfigError(f"the table has no column {name!r}: {hint}")
    return experiment.model_copy(update={"data": tuple(known[name] for name in wanted)})
