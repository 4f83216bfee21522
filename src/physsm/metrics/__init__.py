"""Metrics by name, as in `physsm.metrics.mae(measured, predicted)`: one function in each file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from physsm._registry import find, names_in

if TYPE_CHECKING:  # for type checkers and editors; a new metric works without a line here
    from physsm.metrics.acceleration_error import acceleration_error as acceleration_error
    from physsm.metrics.ade import ade as ade
    from physsm.metrics.coverage import coverage as coverage
    from physsm.metrics.crps import crps as crps
    from physsm.metrics.fde import fde as fde
    from physsm.metrics.jerk_error import jerk_error as jerk_error
    from physsm.metrics.mae import mae as mae
    from physsm.metrics.mse import mse as mse
    from physsm.metrics.rmse import rmse as rmse
    from physsm.metrics.speed_error import speed_error as speed_error

# Python binds an imported submodule to its name in the package: `physsm.metrics.mae` would be the
# file. So all files are imported here, once, and their functions take the names.
globals().update({name: find("metrics", name, "METRIC").function for name in names_in("metrics")})


def __dir__() -> list[str]:
    return names_in("metrics")
