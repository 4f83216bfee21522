"""Linear algebra in the finite field against exact rational arithmetic."""

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

from physsm.physics.generic import PRIME, GenericPoint, determined_columns

x, y = sp.symbols("x y")


def rational_answer(matrix: np.ndarray) -> list[bool]:
    null_space = sp.Matrix(matrix).nullspace()
    return [all(vector[j] == 0 for vector in null_space) for j in range(matrix.shape[1])]


@given(
    st.integers(1, 5).flatmap(
        lambda n: st.lists(
            st.lists(st.sampled_from([0, 0, 0, 1, -1, 2, 7]), min_size=n, max_size=n),
            min_size=1,
            max_size=5,
        )
    )
)
def test_determined_columns(rows):
    matrix = np.array(rows, np.int64)
    assert determined_columns(matrix).tolist() == rational_answer(matrix)


@pytest.mark.parametrize(
    "identity",
    [
        sp.sin(x) ** 2 + sp.cos(x) ** 2 - 1,
        sp.tan(x) * sp.cos(x) - sp.sin(x),
        (x + y) ** 3 - sp.expand((x + y) ** 3),
        x / (x * y) - 1 / y,
        sp.Rational(1, 3) * x * 3 - x,
        (x**2 - y**2) / (x - y) - x - y,
    ],
)
def test_identities_hold(identity):
    assert GenericPoint(3, {}).value(identity) == 0


@pytest.mark.parametrize("other", [sp.sin(x) - sp.cos(x), sp.exp(x) - sp.log(x), x**2 - x, x - y])
def test_different_functions_differ(other):
    assert GenericPoint(3, {}).value(other) % PRIME != 0


def test_equal_arguments_give_equal_values():
    one, two = GenericPoint(1, {x: 5}), GenericPoint(2, {x: 5})
    assert one.value(sp.exp(x)) == two.value(sp.exp(x))
    assert one.value(sp.sin(2 * x)) == two.value(sp.sin(2 * x))
    assert one.value(y) != two.value(y)
