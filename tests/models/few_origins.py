"""Fewer forecasts behind choices and intervals: one block of least-squares fits, not many."""

from collections.abc import Iterator

import pytest

from physsm.models import least_squares, sindy
from physsm.models._baseline import forecaster


@pytest.fixture(scope="module")
def few_origins() -> Iterator[None]:
    """For tests of what is fitted, which do not depend on how well its errors are known."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forecaster, "_ORIGINS", 60)
        patch.setattr(least_squares, "_CHOICE_ORIGINS", 60)
        patch.setattr(sindy, "_CHOICE_ORIGINS", 60)
        yield
