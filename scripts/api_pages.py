"""Writes the API pages of models, data sets and metrics: one entry for each file of the family.

`--check` changes nothing and fails if a page is stale.
"""

from __future__ import annotations

import sys
from pathlib import Path

from physsm._registry import find, names_in

FOLDER = Path(__file__).parent.parent / "docs" / "api"
MODELS = """\
# Models

Every model has the same interface: settings that can be fitted, and a fitted model that forecasts.
Its name on the command line is the name of its file. Settings are fields of its `Config`, given by
name or in a TOML file.

```python
from physsm.models import arx, goku

arx.MODEL.create(None, {"lags": [5, 20]})  # settings as in a TOML file
goku.MODEL  # the class, here Goku
```

## What all models share

::: physsm.models._base.AbstractForecaster
    options: {heading_level: 3}

::: physsm.models._base.AbstractFitted
    options: {heading_level: 3}
"""
DATASETS = """\
# Data sets

Each data set is `DATASET` in the module of its name, such as `physsm.datasets.covid`. `split` makes
the parts of one protocol. [Data sets](../datasets.md) describes the data.

```python
from physsm.datasets.pendulum import DATASET

split = DATASET.split("states", series=(4, 2, 2), rows=40)
split.train.panel, split.test.windows
```

## What all data sets share

::: physsm.datasets._dataset.Dataset
    options: {heading_level: 3}

::: physsm.datasets._dataset.Split
    options: {heading_level: 3}

::: physsm.datasets._dataset.Part
    options: {heading_level: 3}
"""
METRICS = """\
# Metrics

Each metric is a function in the module of its name, such as `physsm.metrics.mae`.
[Metrics](../metrics.md) has the formulas and what is scored.

```python
import numpy as np
from physsm.metrics import mae

mae(np.array([[[1.0]]]), np.array([[[1.5]]]))  # windows, steps, channels
```
"""
_INDENT = "    options: {heading_level: 3}\n"


def model_entry(name: str) -> str:
    """Class, settings and fitted form of a model."""
    forecaster = find("models", name, "MODEL")
    parts = [forecaster, forecaster.Config]
    entries = (f"::: {part.__module__}.{part.__qualname__}\n{_INDENT}" for part in parts)
    return f"## `{name}`\n\n" + "\n".join(entries)


def dataset_entry(name: str) -> str:
    """A data set: its module, with the functions of its protocols."""
    options = "    options: {heading_level: 2, show_root_heading: false}\n"
    return f"## `{name}`\n\n::: physsm.datasets.{name}\n{options}"


def metric_entry(name: str) -> str:
    """The function of a metric."""
    metric = find("metrics", name, "METRIC")
    function = getattr(metric, "function", metric)
    return f"## `{name}`\n\n::: {function.__module__}.{function.__qualname__}\n{_INDENT}"


def pages() -> dict[str, str]:
    """Every page by its name."""
    families = {
        "models": (MODELS, model_entry),
        "datasets": (DATASETS, dataset_entry),
        "metrics": (METRICS, metric_entry),
    }
    return {
        family: "\n".join([head, *(entry(name) for name in names_in(family))])
        for family, (head, entry) in families.items()
    }


if __name__ == "__main__":
    for family, text in pages().items():
        page = FOLDER / f"{family}.md"
        if "--check" not in sys.argv:
            page.write_text(text, "utf-8")
        elif not page.exists() or page.read_text("utf-8") != text:
            sys.exit(f"docs/api/{family}.md is stale: run python -m scripts.api_pages")
