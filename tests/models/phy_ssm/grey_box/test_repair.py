"""Pieces that ended in another minimum than the rest are fitted again by themselves."""

import numpy as np

from physsm.models.phy_ssm.grey_box.least_squares import local_steps
from physsm.models.phy_ssm.grey_box.pieces import Cut, Pieces
from physsm.models.phy_ssm.grey_box.repair import repaired
from physsm.models.phy_ssm.grey_box.simulation import Normal

ROWS, PIECES = 6, 5
SHARED = np.ones((1, 1))


def equations(shared: np.ndarray, local: np.ndarray) -> Normal:
    """Each piece measures a double well of its one variable, (y^2 - 1)^2 + (y - 1)^2 / 2: a minimum
    of 0 at 1, and a local one near -0.6.
    """
    y = local[..., 0]
    errors = np.stack([y**2 - 1, (y - 1) / np.sqrt(2)], -1)
    slopes = np.stack([2 * y, np.full_like(y, 1 / np.sqrt(2))], -1)
    cost = (errors**2).sum(-1)
    starts = len(local)
    return Normal(
        cost=cost.sum(-1),
        local_local=(slopes**2).sum(-1)[..., None, None],
        local_shared=np.zeros((starts, PIECES, 1, 1)),
        shared_shared=np.ones((starts, 1, 1)),
        local=(slopes * errors).sum(-1)[..., None],
        shared=np.zeros((starts, 1)),
        states=np.repeat(y[..., None, None], ROWS, 2),
        squares=cost.sum(-1)[:, None],
        lagged=np.zeros((starts, 1)),
        shared_of_piece=np.zeros((starts, PIECES, 1)),
        cost_of_piece=cost,
    )


def make_cut() -> Cut:
    gaps = np.ones((PIECES, ROWS))
    gaps[:, 0] = 0
    ones = np.ones((PIECES, ROWS, 1))
    pieces = Pieces(gaps=gaps, controls=ones[..., :0], values=ones, weight=ones)
    return Cut(pieces, np.arange(PIECES), np.zeros(PIECES, int))


def repair(ends: list[float], starts: int = 1) -> np.ndarray | None:
    local = np.repeat(np.array(ends)[None, :, None], starts, axis=0)
    end = Normal(*(part[0] for part in equations(SHARED, local)))
    return repaired(equations, end, np.repeat(SHARED, starts, axis=0), local, make_cut())


def test_a_piece_in_another_minimum_is_found_from_the_states_of_the_others():
    for starts in (1, 3):
        found = repair([1.01, 0.99, -0.6, 1.01, 0.99], starts)
        assert found is not None
        np.testing.assert_allclose(found[2], 1, atol=1e-4)
        # The others stay where they are.
        np.testing.assert_array_equal(found[[0, 1, 3, 4], 0], [1.01, 0.99, 1.01, 0.99])


def test_nothing_is_done_where_all_pieces_are_alike():
    assert repair([1.01, 0.99, 1.02, 1.01, 0.99]) is None
    assert repair([-0.6] * PIECES) is None


def test_a_local_step_holds_the_shared_variables():
    local = np.full((1, PIECES, 1), 0.9)
    normal = equations(SHARED, local)
    (steps,) = local_steps(normal, np.zeros((1, PIECES)))
    wanted = -normal.local[0] / normal.local_local[0, :, 0]
    np.testing.assert_allclose(steps, wanted, rtol=1e-6)
    normal.local[0, 1] = np.nan
    (steps,) = local_steps(normal, np.zeros((1, PIECES)))
    assert steps[1] == 0
    np.testing.assert_allclose(steps[0], wanted[0], rtol=1e-6)
