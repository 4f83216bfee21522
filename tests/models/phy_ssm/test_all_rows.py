"""The last fit to all rows: which networks are trained again. A whole run with it is in
`tests/benchmark/test_pipeline.py`.
"""

import numpy as np
import pytest

from physsm import PhySSM, System
from physsm._errors import DataError
from physsm.data.parts import WindowSettings, make_parts
from physsm.models._network.training import check_windows
from physsm.models.phy_ssm.all_rows import is_trained_again, length_with_all_rows
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


@pytest.mark.parametrize(("length", "wanted"), [(90, 120), (100, 120), (40, 40)])
def test_series_that_were_fitted_as_a_whole_are_that_again(length, wanted):
    panel = oscillators(0, (120,))[0]
    train = make_parts(panel, None, SIZES, seed=0).train.panel
    assert train.lengths.max() == 90
    assert length_with_all_rows(length, train, panel) == wanted


def test_targets_without_a_measurement_are_refused():
    panel = oscillators(0, (120,))[0]
    parts = make_parts(panel, None, SIZES, seed=0)
    check_windows(parts)
    parts.validation.panel.values[:, SIZES.context :] = np.nan
    with pytest.raises(DataError, match="no validation window has a measurement in its target"):
        check_windows(parts)
