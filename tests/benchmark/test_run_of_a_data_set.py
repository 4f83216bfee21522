"""A run on a data set is scored as its protocol says."""

import numpy as np

from physsm._registry import find
from physsm.benchmark.evaluate import BASELINES, score
from physsm.benchmark.evaluation_windows import windows_of_validation_part
from physsm.benchmark.run import Request, fit_run
from physsm.benchmark.run_folder import load_baselines, run_sizes
from physsm.models._baseline.forecaster import AbstractBaseline


def test_windows_units_and_horizon_are_those_of_the_protocol(tmp_path):
    split = find("datasets", "pendulum", "DATASET").split("states")
    request = Request(
        model="line", settings={"points": [5]}, system=None, seed=0, data="pendulum:states"
    )
    run = fit_run(request, split, tmp_path / "run", title="")
    assert run_sizes(run.folder) == split.sizes
    assert [row["model"] for row in run.scores] == ["line", *(n for n in BASELINES if n != "line")]
    line = run.scores[0]
    assert line["horizon"][-1][1] == split.sizes.horizon
    expected = score(run.model, windows_of_validation_part(split))
    assert line["extrap_mae"] == expected["extrap_mae"]
    assert isinstance(run.model, AbstractBaseline)
    shorter = find("models", "line", "MODEL").create(None, {"points": [5], "horizon": 3})
    narrow = shorter.fit(split.train.panel, split.validation.panel)
    # The intervals were made for the protocol's horizon, not for a shorter one.
    assert run.model.spread.leads.max() > narrow.spread.leads.max()
    arx = load_baselines(run.folder)["arx"]
    assert isinstance(arx, AbstractBaseline)
    np.testing.assert_allclose(arx.spread.leads.max(), run.model.spread.leads.max(), rtol=0.2)
