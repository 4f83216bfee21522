"""A run on a data set is scored as its protocol says."""

import numpy as np

from physsm._registry import find
from physsm.benchmark.evaluate import CLASSICAL, score
from physsm.benchmark.run import Request, fit_run, load_classical, run_sizes
from physsm.benchmark.trial import validation_trial
from physsm.models._baseline.forecaster import AbstractBaseline


def test_windows_units_and_horizon_are_those_of_the_protocol(tmp_path):
    split = find("datasets", "pendulum", "DATASET").split("states")
    request = Request("line", {"points": [5]}, None, 0, "pendulum:states")
    run = fit_run(request, split.train.panel, tmp_path / "run", title="", split=split)
    assert run_sizes(run.folder) == split.sizes
    assert [row["model"] for row in run.scores] == ["line", *(n for n in CLASSICAL if n != "line")]
    line = run.scores[0]
    assert line["horizon"][-1][1] == split.sizes.horizon
    expected = score(run.model, validation_trial(split))
    assert line["extrap_mae"] == expected["extrap_mae"]
    assert isinstance(run.model, AbstractBaseline)
    shorter = find("models", "line", "MODEL").create(None, {"points": [5], "horizon": 3})
    narrow = shorter.fit(split.train.panel, split.validation.panel)
    # The intervals were made for the protocol's horizon, not for a shorter one.
    assert run.model.spread.leads.max() > narrow.spread.leads.max()
    arx = load_classical(run.folder)["arx"]
    assert isinstance(arx, AbstractBaseline)
    np.testing.assert_allclose(arx.spread.leads.max(), run.model.spread.leads.max(), rtol=0.2)
