"""Steps by elimination, and covariances, against dense linear algebra."""

import numpy as np
import pytest

from physsm.models.phy_ssm.grey_box.least_squares import (
    covariance_of_shared,
    gauss_newton_steps,
    minimise,
)
from physsm.models.phy_ssm.grey_box.simulation import Normal

PIECES, ROWS, Q, K = 3, 20, 2, 2


def random_problem(seed: int, pieces: int = PIECES) -> tuple[Normal, np.ndarray, np.ndarray]:
    """Blocks of a linear problem, its dense Jacobian (shared variables first) and its errors."""
    rng = np.random.default_rng(seed)
    local, shared = rng.standard_normal((pieces, ROWS, Q)), rng.standard_normal((pieces, ROWS, K))
    error = rng.standard_normal((pieces, ROWS))
    jacobian = np.zeros((pieces * ROWS, K + pieces * Q))
    for p in range(pieces):
        rows = slice(p * ROWS, (p + 1) * ROWS)
        jacobian[rows, :K], jacobian[rows, K + p * Q : K + (p + 1) * Q] = shared[p], local[p]
    of_shared = np.einsum("prk,pr->pk", shared, error)
    normal = Normal(
        cost=np.array([(error**2).sum()]),
        local_local=np.einsum("prq,prs->pqs", local, local)[None],
        local_shared=np.einsum("prq,prk->pqk", local, shared)[None],
        shared_shared=np.einsum("prk,prj->kj", shared, shared)[None],
        local=np.einsum("prq,pr->pq", local, error)[None],
        shared=of_shared.sum(0)[None],
        states=np.zeros((1, pieces, ROWS, Q)),
        squares=np.array([[(error**2).sum()]]),
        lagged=np.zeros((1, 1)),
        shared_of_piece=of_shared[None],
        cost_of_piece=(error**2).sum(1)[None],
    )
    return normal, jacobian, error.reshape(-1)


@pytest.mark.parametrize("damping", [0.0, 0.1])
def test_a_step_by_elimination_is_that_of_the_dense_equations(damping):
    normal, jacobian, error = random_problem(0)
    found_shared, found_local = gauss_newton_steps(
        normal, np.array([damping]), np.full((1, K), 1e3)
    )
    both = jacobian.T @ jacobian
    both = both + damping * np.diag(np.diagonal(both))
    wanted = -np.linalg.solve(both, jacobian.T @ error)
    np.testing.assert_allclose(found_shared[0], wanted[:K], rtol=1e-8)
    np.testing.assert_allclose(found_local[0].reshape(-1), wanted[K:], rtol=1e-8)


def valley(shared: np.ndarray, local: np.ndarray) -> Normal:
    """The valley of Rosenbrock, in the shared variables; the local one is a number to be zero."""
    x, y = shared[0]
    z = local[0, 0, 0]
    errors = np.array([100 * (y - x**2), 1 - x, z])
    jacobian = np.array([[-200 * x, 100.0, 0], [-1, 0, 0], [0, 0, 1]])
    both, gradient = jacobian.T @ jacobian, jacobian.T @ errors
    return Normal(
        cost=np.array([1e3 + (errors**2).sum()]),  # as with noise: gains are small shares of it
        local_local=both[None, None, 2:, 2:],
        local_shared=both[None, None, 2:, :2],
        shared_shared=both[None, :2, :2],
        local=gradient[None, None, 2:],
        shared=gradient[None, :2],
        states=np.zeros((1, 1, 1, 1)),
        squares=np.array([[(errors**2).sum()]]),
        lagged=np.zeros((1, 1)),
        shared_of_piece=gradient[None, None, :2],
        cost_of_piece=np.array([[(errors**2).sum()]]),
    )


def test_a_narrow_valley_is_followed_to_its_end():
    """Its steps are damped and gain little, which is no reason to stop: it ends at (1, 1), or where
    not even the rest of the way would gain a share of 2e-5.
    """
    start = np.array([[-1.2, 1.0]]), np.ones((1, 1, 1))
    end = minimise(valley, *start, iterations=200, tolerance=1e-5)
    assert end.normal.cost[0] < 1e3 * (1 + 2e-5)


def test_a_start_whose_equations_are_not_finite_takes_no_step():
    normal, *_ = random_problem(0)
    two = Normal(*(np.concatenate([part, part]) for part in normal))
    two.local_local[1, 0, 0, 0] = np.nan
    shared, local = gauss_newton_steps(two, np.zeros(2), np.ones((2, K)))
    assert np.abs(shared[0]).max() > 0
    assert not shared[1].any()
    assert not local[1].any()


@pytest.mark.parametrize("number", [2.0**100, np.inf])
def test_singular_equations_end_in_no_error(number):
    """As after a simulation that has nearly overflowed: no step is known, or none is taken."""
    normal, _, _ = random_problem(1)
    local_local = normal.local_local.copy()
    local_local[0, 1] = number
    singular = normal._replace(local_local=local_local)
    steps = gauss_newton_steps(singular, np.zeros(1), np.full((1, K), 1e3))
    covariance = covariance_of_shared(singular, 0, np.ones((PIECES, ROWS, 1)))
    assert all(np.isfinite(part).all() == np.isinf(number) for part in steps)
    assert np.isfinite(covariance).all()
    assert (np.diagonal(covariance) > 0).all()


def test_standard_errors_of_white_errors_are_those_of_linear_regression():
    normal, jacobian, error = random_problem(1)
    found = covariance_of_shared(normal, 0, np.ones((PIECES, ROWS, 1)))
    free = len(error) - jacobian.shape[1]
    wanted = np.linalg.inv(jacobian.T @ jacobian)[:K, :K] * (error @ error / free)
    np.testing.assert_allclose(found, wanted, rtol=1e-8)


def test_pieces_without_measurements_do_not_change_standard_errors():
    normal, *_ = random_problem(1)
    wanted = covariance_of_shared(normal, 0, np.ones((PIECES, ROWS, 1)))
    pieces = ("local_local", "local_shared", "local", "states", "shared_of_piece")
    empty = {
        name: np.concatenate([part, np.zeros_like(part[:, :1])], axis=1)
        for name, part in normal._asdict().items()
        if name in pieces
    }
    empty["local_local"][:, -1] = np.eye(Q)  # of the priors
    weight = np.concatenate([np.ones((PIECES, ROWS, 1)), np.zeros((1, ROWS, 1))])
    found = covariance_of_shared(normal._replace(**empty), 0, weight)
    np.testing.assert_allclose(found, wanted, rtol=1e-8)


def test_errors_that_are_correlated_make_standard_errors_larger():
    normal, *_ = random_problem(1)
    white = covariance_of_shared(normal, 0, np.ones((PIECES, ROWS, 1)))
    half = normal._replace(lagged=normal.squares / 2)
    found = covariance_of_shared(half, 0, np.ones((PIECES, ROWS, 1)))
    np.testing.assert_allclose(found, 3 * white, rtol=1e-8)  # (1 + 1/2)/(1 - 1/2)


def test_a_variable_that_nothing_determines_does_not_change_the_others():
    """Pieces that disagree widen the variance of a variable, whatever that of another one is."""
    normal, _, _ = random_problem(4, pieces=12)
    weight = np.ones((12, ROWS, 1))
    disagreeing = normal._replace(shared_of_piece=10 * normal.shared_of_piece)
    without = [np.array([1.0, 0.0]), np.array([[1.0, 0.0], [0.0, 0.0]])]
    undetermined = disagreeing._replace(
        shared_of_piece=disagreeing.shared_of_piece * without[0],
        local_shared=disagreeing.local_shared * without[0],
        shared_shared=disagreeing.shared_shared * without[1] + 1e-12 * np.diag([0.0, 1.0]),
    )
    alone = disagreeing._replace(
        shared_of_piece=undetermined.shared_of_piece[..., :1],
        local_shared=undetermined.local_shared[..., :1],
        shared_shared=undetermined.shared_shared[..., :1, :1],
        shared=disagreeing.shared[..., :1],
    )
    found, wanted = (covariance_of_shared(one, 0, weight) for one in (undetermined, alone))
    np.testing.assert_allclose(found[0, 0], wanted[0, 0], rtol=0.01)
    assert found[1, 1] > 1e9
