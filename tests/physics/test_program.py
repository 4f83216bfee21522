"""Compiled programs against SymPy's own arbitrary-precision evaluation."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sympy as sp

from physsm.physics.compiled import evaluate
from physsm.physics.program import compile_program, run_program

x, y = sp.symbols("x y")
EXPRESSIONS = [
    sp.Integer(0),
    sp.Rational(1, 3),
    x,
    -x,
    -3 * x * y,
    x + y + 1,
    x**3 - y**2,
    1 / x,
    -1 / (x * y),
    sp.sqrt(x) / y,
    x ** sp.Rational(-3, 2),
    x ** sp.Rational(1, 3),
    sp.exp(-x / 2) * sp.sin(y) ** 2,
    sp.cos(x) + sp.tan(y / 9) - sp.log(x),
    (x + y) ** 5,
]


@pytest.mark.parametrize(("dtype", "tolerance"), [(jnp.float32, 2e-6), (jnp.float64, 1e-14)])
def test_values_and_gradients(dtype, tolerance):
    program = compile_program(EXPRESSIONS, [x, y])
    point = np.asarray([1.3, 0.7])
    at = dict(zip((x, y), map(sp.Float, point), strict=True))
    values = evaluate(program, jnp.asarray(point, dtype))
    assert values.dtype == dtype
    expected = np.array([float(e.evalf(30, subs=at)) for e in EXPRESSIONS])
    np.testing.assert_allclose(values, expected, rtol=tolerance)
    slopes = jax.jacfwd(partial(evaluate, program))(jnp.asarray(point, dtype))
    expected = [[float(e.diff(s).evalf(30, subs=at)) for s in (x, y)] for e in EXPRESSIONS]
    np.testing.assert_allclose(slopes, expected, rtol=5 * tolerance, atol=1e-7)


def test_common_parts_are_computed_once():
    program = compile_program([sp.sin(x * y), sp.sin(x * y) + 1, 2 * sp.sin(x * y)], [x, y])
    assert sum(operation.name == "sin" for operation in program.operations) == 1


def test_equal_programs_share_their_compilation():
    one, two = (compile_program([x + sp.sin(y)], [x, y]) for _ in range(2))
    assert one == two
    assert one is not two
    assert hash(one) == hash(two)
    assert one != compile_program([x + sp.cos(y)], [x, y])


def test_a_bad_value_stays_in_its_place():
    program = compile_program([sp.log(x), y], [x, y])
    values = evaluate(program, jnp.asarray([-1.0, 2.0]))
    assert np.isnan(values[0])
    assert values[1] == 2


def test_numpy_and_jax_agree():
    program = compile_program(EXPRESSIONS, [x, y])
    points = np.linspace([0.5, 0.6], [2.0, 1.5], 7)
    by_numpy = np.stack(
        [np.broadcast_to(v, 7) for v in run_program(program, list(points.T), np)], axis=1
    )
    np.testing.assert_allclose(jax.vmap(partial(evaluate, program))(points), by_numpy, rtol=1e-12)
