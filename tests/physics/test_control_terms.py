"""Functions of controls alone, read off the equations."""

import numpy as np
import pytest

from physsm import System
from physsm.physics.program import run_program


@pytest.mark.parametrize(
    ("text", "functions"),
    [
        ("control u\nx' = ?*x + ?*u", []),
        ("control u\nx' = ?*x + [u]*?", []),
        ("control u\nx' = ?*x + [u**2]*?", ["u**2"]),
        ("control u\nx' = ?*x - 3*[u**2]*?", ["u**2"]),
        ("control u\nx' = -x + [sin(u)]*0.5", ["sin(u)"]),
        ("control u, v\nx' = ?*x + ?*[u]*v", ["u*v"]),
        ("control u, v\nx' = ?*x + [u**2 - v**2]*?", ["u**2", "v**2"]),
        ("control u\nx' = ?*x + [u**2]*?\ny' = ?*y + [u**2]*?", ["u**2"]),
        ("control u\nx' = ?*[u**2]*x + [u**2*x]*?", []),
        ("x' = ?*x + ?", []),
    ],
)
def test_functions_that_the_equations_name(text, functions):
    terms = System.parse(text).structure.control_terms
    assert sorted(str(function) for function in terms) == functions


def test_the_program_computes_them_for_many_rows_at_once():
    system = System.load("quadrotor_rotors")
    u = np.random.default_rng(0).standard_normal((5, 7))
    found = run_program(system.control_functions, list(u.T), np)
    np.testing.assert_allclose(np.stack(found, -1), u[:, :4] ** 2)


def test_known_signs_of_the_rotors_turn_the_frame_as_they_should():
    """The published arms: rotors 1 to 4 at (+,-), (-,-), (-,+), (+,+). A force along z at (x, y)
    has the torque (y, -x), and rotors of a diagonal turn the same way.
    """
    system = System.load("quadrotor_rotors")
    gains = {unknown.name: float(not unknown.anonymous) for unknown in system.unknowns}
    theta = system.theta(gains)
    arms = np.array([(1, -1), (-1, -1), (-1, 1), (1, 1)])
    for rotor, (x, y) in enumerate(arms):
        u = np.zeros(7)
        u[rotor] = 2.0
        slope = np.asarray(system.drift(theta, np.zeros(6), u))
        np.testing.assert_allclose(slope[:2], 0)
        np.testing.assert_allclose(slope[2:5], [4, 4 * y, -4 * x])
        assert slope[5] == 4 * (-1) ** (rotor + 1)
