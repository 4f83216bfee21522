"""The last fit to all rows: which networks are trained again. A whole run with it is in
`tests/benchmark/test_pipeline.py`.
"""

import pytest

from physsm import PhySSM, System
from physsm.data.parts import WindowSettings, make_parts
from physsm.models.phy_ssm.all_rows import is_trained_again
from tests.models.phy_ssm.grey_box.make import TEXT, oscillators

VARYING = TEXT.replace("unknown ?k, ?c constant", "unknown ?k constant")
SIZES = WindowSettings(context=12, horizon=6, stride=4)


@pytest.mark.parametrize(("series", "wanted"), [(1, True), (3, True), (10, False)])
def test_a_network_is_trained_again_where_validation_is_the_end_of_its_series(series, wanted):
    panel = oscillators(0, (120,) * series, error=0.05)[0]
    parts = make_parts(panel, None, SIZES, seed=0)
    config = PhySSM(System.parse(VARYING)).config
    assert is_trained_again(config, parts) is wanted
    assert not is_trained_again(config.model_copy(update={"refit": False}), parts)
