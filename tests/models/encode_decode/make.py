"""Pendulums, and small networks around them."""

from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from physsm import System
from physsm._registry import find
from physsm._values import Panel, Series
from physsm.data.window import Sizes, gather, whole_series
from physsm.models._encode_decode.values import Window, as_window
from physsm.models._files import Interface
from physsm.models._intervals import uncalibrated
from physsm.models.latent_ode import FittedLatentODE

STIFFNESS, FRICTION = 6.0, 0.3
SIZES = Sizes(10, 5, 5)
PENDULUM = """theta' = omega
omega' = -?stiffness*sin(theta) - ?friction*omega
unknown ?stiffness, ?friction constant
?stiffness >= 0
?friction >= 0
observe theta, omega
"""


def pendulums(
    number: int, rows: int, seed: int, gap: float = 0.2, stiffness: Any = STIFFNESS
) -> Panel:
    """Swinging pendulums, measured without noise at irregular times; one stiffness, or one each."""
    rng = np.random.default_rng(seed)
    series = []
    for i, own in enumerate(np.broadcast_to(stiffness, number)):

        def right(_, y, own=own):
            return [y[1], -own * np.sin(y[0]) - FRICTION * y[1]]

        times = np.cumsum(rng.uniform(0.5, 1.5, rows) * gap)
        start = rng.uniform([-1.2, -2.0], [1.2, 2.0])
        span = (times[0], times[-1])
        states = solve_ivp(right, span, start, t_eval=times, rtol=1e-9, atol=1e-9).y.T
        series.append(Series(str(i), times, states, np.zeros((rows, 0))))
    return Panel.from_series(series, ["theta", "omega"])


def network(
    name: str, panel: Panel, sizes: Sizes = SIZES, physics: str = PENDULUM, **settings: Any
) -> Any:
    """An untrained network for a panel."""
    model = find("models", name, "MODEL")
    system = System.parse(physics) if model.physics else None
    small = {**model.test_settings(), **settings}
    return model.create(system, small).network(panel, panel, sizes, 0)


def window_of(found: Any, panel: Panel, sizes: Sizes = SIZES) -> Window:
    """The last time steps of each series as a window."""
    context, horizon = sizes.context, sizes.horizon
    scaled = found.scales.table.scale(panel)
    batch = gather(scaled, whole_series(panel, horizon), context, horizon, 1.0)
    return as_window(batch, context, found.dtype)


def fitted(panel: Panel, **settings: Any) -> FittedLatentODE:
    """A latent ODE as after a training of no steps."""
    return FittedLatentODE(
        network=network("latent_ode", panel, SIZES, **settings),
        interface=Interface.of(panel),
        calibration=uncalibrated(2),
        noise=(0.1, 0.1),
        sizes=SIZES,
    )
