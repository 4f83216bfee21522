"""Jobs chosen by the options of `physsm bench run`."""

from __future__ import annotations

from typing import cast

from physsm._errors import ConfigError, did_you_mean
from physsm.benchmark.experiment import BUDGETS, Budget, Experiment, Job, jobs, read_experiment
from physsm.benchmark.job import depends_on_seed


def chosen_jobs(
    table: str, budget: str, seeds: int | None, models: str | None, data: str | None
) -> tuple[str, list[Job]]:
    """The name of a table and its chosen jobs. Where seeds change nothing, there is only seed 0."""
    if budget not in BUDGETS:
        raise ConfigError(f"there is no budget {budget!r}: there are {', '.join(BUDGETS)}")
    name, experiment = read_experiment(table)
    experiment = _with_columns(experiment, data)
    rows = None if models is None else [model.strip() for model in models.split(",")]
    numbers = range(seeds or experiment.seeds)
    every = jobs(name, experiment, numbers, cast(Budget, budget), rows)
    return name, [job for job in every if job.seed == 0 or depends_on_seed(job)]


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
