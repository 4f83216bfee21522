"""GOKU with the true equations finds their constants."""

import numpy as np

from physsm import System
from physsm.models.goku import Goku
from tests.models.trajectory.make import FRICTION, PENDULUM, STIFFNESS, pendulums

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


def test_true_physics_gives_its_parameters_within_a_tenth():
    train, validation = pendulums(30, 24, 0), pendulums(6, 24, 1)
    fitted = Goku(System.parse(PENDULUM), **SETTINGS).fit(train, validation, seed=0)
    found = fitted.unknowns(validation)
    assert found.names == ("stiffness", "friction")
    np.testing.assert_allclose(found.mean[0, 0], [STIFFNESS, FRICTION], rtol=0.1)
