"""GOKU with the true equations learns their constants, and infers the unknowns of each window."""

import numpy as np

from physsm import System
from physsm.models._network.training import make_task
from physsm.models.goku import Goku
from physsm.training.loop import train as run_training
from tests.models.encode_decode.make import FRICTION, PENDULUM, STIFFNESS, pendulums

SETTINGS = {
    "context": 10,
    "horizon": 5,
    "stride": 2,
    "residual": False,
    "samples": 8,
    "encoder": {"width": 24},
    "encoder_perceptron": {"width": 32, "layers": 1},
    "start_perceptron": {"width": 32, "layers": 1},
    "training": {"steps": 400, "batch_size": 64, "validations": 8},
}


def test_unknowns_of_windows_are_inferred_by_the_encoder_that_reads_both_ways():
    """Each pendulum has a stiffness of its own, which its measurements alone tell."""
    physics = PENDULUM.replace(
        "unknown ?stiffness, ?friction constant",
        "unknown ?stiffness per series\nunknown ?friction constant",
    )
    stiffness = {number: np.linspace(3.0, 9.0, number) for number in (40, 8)}
    train = pendulums(40, 24, 0, stiffness=stiffness[40])
    validation = pendulums(8, 24, 1, stiffness=stiffness[8])
    fitted = Goku(System.parse(physics), **SETTINGS).fit(train, validation, seed=0)
    found = fitted.unknowns(validation)
    own = found.mean[:, 0, 0]
    assert np.median(np.abs(own / stiffness[8] - 1)) < 0.1
    assert np.corrcoef(own, stiffness[8])[0, 1] > 0.9
    np.testing.assert_allclose(found.mean[:, 0, 1], FRICTION, rtol=0.5)
    assert (found.std[:, 0, 0] > 0).all()
    assert np.isnan(found.std[..., 1]).all()  # no standard errors of constants are known


def test_true_physics_gives_its_parameters_within_a_tenth():
    """By the training alone: intervals of forecasts are not needed here."""
    train, validation = pendulums(30, 24, 0), pendulums(6, 24, 1)
    # Constants need less of a training than an encoder of them.
    settings = {**SETTINGS, "training": {"steps": 250, "batch_size": 32, "validations": 4}}
    model = Goku(System.parse(PENDULUM), **settings)
    parts = model.parts(train, validation)
    network = model.network(train, validation, parts.sizes, 0)
    task = make_task(network, parts, model.config, model.objective, Goku.error)
    trained = run_training(task, model.config.training, seed=0).params
    assert [unknown.name for unknown in trained.physics.system.unknowns] == [
        "stiffness",
        "friction",
    ]
    theta = trained.physics.theta(trained.constants)
    np.testing.assert_allclose(theta, [STIFFNESS, FRICTION], rtol=0.1)
