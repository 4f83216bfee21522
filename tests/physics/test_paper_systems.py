"""The four systems against the matrices that the paper prints (Appendix D.2), entry by entry."""

import numpy as np
import pytest

from physsm import System

PENDULUM_A = """
    0 1 0 0
    ? ? ? ?
    0 0 0 omega
    0 0 -omega 0"""
SIR_A = """
    -I*? 0 0
    I*?  ? ?
    0    ? 0"""
VEHICLE_A = """
    0 0 0 1 0 0
    0 0 0 0 1 0
    0 0 0 0 0 1
    ? 0 0 ? 0 0
    ? ? ? ? ? ?
    ? ? ? ? ? ?"""
QUADROTOR_A = """
    ? ? ? 0 0 0 ? ? ? ? 0
    ? ? ? 0 0 0 ? ? ? ? 0
    ? ? ? 0 0 0 ? ? ? ? 0
    0 0 0 ? ? ? ? ? ? ? 0
    0 0 0 ? ? ? ? ? ? ? 0
    0 0 0 ? ? ? ? ? ? ? 0
    0 0 0 0 0 0 ? 0 0 0 rpm1*?
    0 0 0 0 0 0 0 ? 0 0 rpm2*?
    0 0 0 0 0 0 0 0 ? 0 rpm3*?
    0 0 0 0 0 0 0 0 0 ? rpm4*?
    0 0 0 0 0 0 0 0 0 0 0"""


def entries(system: System) -> tuple[list[list[str]], list[list[str]]]:
    """A as the paper prints it, rebuilt from the known entries and the unknowns' places."""
    from physsm.physics.explain import describe

    described = describe(system.structure)
    result = []
    for matrix, columns in (("A", described["names"]), ("B", described["controls"])):
        cells = [list(row) for row in described[f"known_{matrix}"]]
        for unknown in described["unknowns"]:
            for entry in unknown["entries"]:
                if entry["matrix"] == matrix:
                    i = described["names"].index(entry["row"])
                    j = columns.index(entry["column"])
                    assert cells[i][j] == "0", "a known and an unknown part share an entry"
                    cells[i][j] = "?" if entry["factor"] == "1" else f"{entry['factor']}*?"
        result.append(cells)
    return result[0], result[1]


@pytest.mark.parametrize(
    ("name", "states", "paper_A"),
    [
        ("pendulum", "theta omega sin(theta) cos(theta)", PENDULUM_A),
        ("sir", "S I R", SIR_A),
        ("vehicle", "p y psi v_p v_y v_psi", VEHICLE_A),
        ("quadrotor", "v_x v_y v_z w_x w_y w_z m1 m2 m3 m4 1", QUADROTOR_A),
        (
            "quadrotor_code",
            "v_x v_y v_z w_x w_y w_z m1 m2 m3 m4 1",
            QUADROTOR_A.replace("rpm", "m"),
        ),
    ],
)
def test_matrices_equal_the_papers(name, states, paper_A):
    system = System.load(name)
    expected = [row.split() for row in paper_A.strip().split("\n")]
    A, B = entries(system)
    assert system.names == tuple(states.split())
    assert expected == A
    np.testing.assert_array_equal(
        system.mask_A, [["?" in cell for cell in row] for row in expected]
    )
    if name == "pendulum":
        assert B == [["0"], ["?"], ["0"], ["0"]]
        np.testing.assert_array_equal(system.mask_B, [[0], [1], [0], [0]])
    else:
        assert not system.mask_B.any()


def test_each_star_of_the_paper_is_an_unknown_of_its_own():
    counts = {"pendulum": 5, "sir": 5, "vehicle": 14, "quadrotor": 50, "quadrotor_code": 50}
    for name, count in counts.items():
        assert len(System.load(name).unknowns) == count
