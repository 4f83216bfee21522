"""The named configurations: valid, complete, and of nearly equal size."""

import pytest

from physsm import System
from physsm._arguments import merged
from physsm._errors import ConfigError
from physsm._registry import find
from physsm.benchmark.configurations import (
    configuration,
    configuration_names,
    read_configuration,
)
from physsm.benchmark.experiment import experiment_names, read_experiment
from physsm.benchmark.parameters import number_of_parameters, row_parameters

COMPARED = {
    "latent_ode",
    "ode_rnn",
    "contiformer",
    "s5",
    "goku",
    "pi_vae",
    "sdvae",
    "ode2vae",
    "phy_ssm",
}


@pytest.mark.parametrize("name", configuration_names())
def test_all_models_have_within_a_tenth_of_the_same_number_of_parameters(name):
    named = read_configuration(name)
    assert set(named.models) == COMPARED
    system = System.load(named.physics)
    numbers = [
        number_of_parameters(model, configuration(name, model), system, named.channels)
        for model in named.models
    ]
    assert None not in numbers
    assert max(numbers) <= 1.1 * min(numbers)  # type: ignore[type-var,operator]


@pytest.mark.parametrize("name", configuration_names())
def test_sequential_encoders_are_as_deep_as_the_appendix_says(name):
    depth = {"drone": 5, "covid": 4, "pendulum": 4}[name]
    for model in ("latent_ode", "goku", "pi_vae", "sdvae", "ode2vae", "s5", "phy_ssm"):
        assert configuration(name, model)["encoder"]["depth"] == depth
    for model, width in {"latent_ode": 32, "goku": 16, "pi_vae": 16, "sdvae": 128}.items():
        assert configuration(name, model)["encoder"]["width"] == width


def test_the_number_of_parameters_is_that_of_the_file():
    """The one that is counted without data is the one that is trained."""
    settings = {"encoder": {"width": 5}, "latent": 3}
    system = System.parse("x' = -?*x")
    found = number_of_parameters("latent_ode", settings, system, 2)
    wider = number_of_parameters("latent_ode", {**settings, "latent": 4}, system, 2)
    drift = 64  # one more column of the first layer, and one more row of the last, with its bias
    assert found is not None
    assert wider is not None
    decoder, head = 64, 2 * (5 + 1)
    assert wider - found == drift + (64 + 1) + decoder + head


def test_baselines_have_no_parameters():
    assert number_of_parameters("repeat_last", {}, System.load("sir"), 3) is None


def test_unknown_names_list_the_known_ones():
    with pytest.raises(ConfigError, match="covid"):
        read_configuration("covids")
    with pytest.raises(ConfigError, match="goku"):
        configuration("covid", "goko")


@pytest.mark.parametrize("table", experiment_names())
def test_every_row_of_every_table_can_be_made(table):
    """Settings are valid in every budget, before anything is fitted."""
    _, experiment = read_experiment(table)
    for row in experiment.row:
        model = find("models", row.model, "MODEL")
        system = System.load(row.physics or "sir") if model.physics else None
        base = configuration(row.configuration, row.model) if row.configuration else {}
        for more in ({}, *row.settings_on.values(), *row.budgets.values()):
            model.create(system, merged(merged(base, row.settings), more))
        assert row.configuration is None or row_parameters(row)
