"""GOKU with the true equations learns their constants, and infers the unknowns of each window."""

import numpy as np

from physsm import System
from physsm.models.goku import Goku
from tests.models.encode_decode.make import FRICTION, PENDULUM, pendulums

SETTINGS = {
    "context": 10,
    "horizon": 5,
    "stride": 2,
    "residual": False,
    "samples": 2,
    "encoder": {"width": 24},
    "encoder_perceptron": {"width": 32, "layers": 1},
    "start_perceptron": {"width": 32, "layers": 1},
    "training": {"steps": 400, "batch_size": 64, "validations": 8},
}


def test_constants_are_learned_and_unknowns_of_windows_inferred(without_type_checks):
    """Each pendulum has a stiffness of its own, which its measurements alone tell; all have the
    same friction.
    """
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
    assert np.median(np.abs(own / stiffness[8] - 1)) < 0.2  # after a short training
    assert np.corrcoef(own, stiffness[8])[0, 1] > 0.9
    np.testing.assert_allclose(found.mean[:, 0, 1], FRICTION, rtol=0.1)
    assert (found.std[:, 0, 0] > 0).all()
    assert np.isnan(found.std[..., 1]).all()  # no standard errors of constants are known
