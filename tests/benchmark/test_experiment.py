"""Experiments as TOML: their jobs, and errors that name the place."""

import pytest

from physsm._errors import ConfigError
from physsm._registry import find, names_in
from physsm.benchmark.experiment import experiment_names, jobs, read_experiment
from physsm.benchmark.store import digest

TEXT = """\
title = "Two models"
[[data]]
name = "pendulum:states"
settings = { rows = 40 }
[[data]]
name = "covid:strict"
[[row]]
model = "line"
settings = { points = [5] }
[row.settings_on."covid:strict"]
horizon = 80
[[row]]
model = "s5"
label = "small_s5"
on = ["pendulum:states"]
settings = { training = { steps = 500, batch_size = 8 } }
[row.budgets.smoke]
training = { steps = 3 }
"""


@pytest.fixture
def table(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return str(path)

    return write


def test_jobs_are_all_cells_with_their_settings(table):
    name, experiment = read_experiment(table(TEXT))
    found = list(jobs(name, experiment, range(2), "smoke"))
    assert [job.name for job in found] == [
        "pendulum-states-line-smoke-0",
        "pendulum-states-line-smoke-1",
        "pendulum-states-small_s5-smoke-0",
        "pendulum-states-small_s5-smoke-1",
        "covid-strict-line-smoke-0",
        "covid-strict-line-smoke-1",
    ]
    assert found[0].settings == {"points": [5]}
    assert found[2].settings == {"training": {"steps": 3, "batch_size": 8}}
    assert found[4].settings == {"points": [5], "horizon": 80}
    assert len({digest(job) for job in found}) == 6


def test_some_rows_can_be_chosen(table):
    name, experiment = read_experiment(table(TEXT))
    found = list(jobs(name, experiment, [7], "cpu", ["small_s5"]))
    assert [(job.row.model, job.seed) for job in found] == [("s5", 7)]
    with pytest.raises(ConfigError, match=r"no row 'lime'.*line"):
        list(jobs(name, experiment, [0], "cpu", ["lime"]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("title = ", "is not TOML"),
        ('title = "x"', "data: Field required"),
        (TEXT.replace("pendulum:states", "mine.csv", 1), r"data\.0\.name.*evaluate"),
        (TEXT.replace("[[row]]\nmodel", "[[row]]\nmodle", 1), "row.0"),
        (TEXT + '[[row]]\nmodel = "line"\n', "two rows called 'line'"),
        (
            TEXT.replace('on = ["pendulum:states"]', 'on = ["drone:strict"]'),
            "column 'drone:strict'",
        ),
        (TEXT.replace("budgets.smoke", "budgets.huge"), "row.1.budgets"),
    ],
)
def test_wrong_tables_say_where(table, text, message):
    with pytest.raises(ConfigError, match=message):
        read_experiment(table(text))


def test_unknown_tables_name_the_known():
    with pytest.raises(ConfigError, match="classical"):
        read_experiment("clasical")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_experiment("nowhere.toml")


@pytest.mark.parametrize("name", experiment_names())
def test_tables_that_come_with_physsm_name_what_exists(name):
    _, experiment = read_experiment(name)
    for column in experiment.data:
        assert column.protocol in find("datasets", column.dataset, "DATASET").protocols
    for job in jobs(name, experiment, [0], "cpu"):
        assert job.row.model in names_in("models")
        model = find("models", job.row.model, "MODEL")
        if not model.physics:
            model.create(None, job.settings)
