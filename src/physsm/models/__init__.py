"""Forecasters by class name, as in `physsm.models.Goku(system)`: one in each file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from physsm._registry import find, names_in

if TYPE_CHECKING:  # for type checkers and editors; a new model works without a line here
    from physsm.models.aphynity import Aphynity as Aphynity
    from physsm.models.arx import Arx as Arx
    from physsm.models.constant_turn_rate import ConstantTurnRate as ConstantTurnRate
    from physsm.models.constant_velocity import ConstantVelocity as ConstantVelocity
    from physsm.models.contiformer import ContiFormer as ContiFormer
    from physsm.models.damped import Damped as Damped
    from physsm.models.goku import Goku as Goku
    from physsm.models.latent_ode import LatentODE as LatentODE
    from physsm.models.least_squares import LeastSquares as LeastSquares
    from physsm.models.line import Line as Line
    from physsm.models.mean import Mean as Mean
    from physsm.models.ode2vae import ODE2VAE as ODE2VAE
    from physsm.models.ode_rnn import ODERNN as ODERNN
    from physsm.models.phy_ssm.forecaster import PhySSM as PhySSM
    from physsm.models.pi_vae import PhysicsVAE as PhysicsVAE
    from physsm.models.repeat_last import RepeatLast as RepeatLast
    from physsm.models.s5 import S5Forecaster as S5Forecaster
    from physsm.models.sdvae import SDVAE as SDVAE
    from physsm.models.sindy import SINDy as SINDy


def __getattr__(name: str) -> Any:
    # Models import JAX, so that none is imported before it is used; a file that is called like the
    # class is tried first.
    if name in names_in("models"):
        return import_module(f"physsm.models.{name}")
    if not name.startswith("_"):
        likely = name.lower()
        files = sorted(names_in("models"), key=lambda file: file.replace("_", "") != likely)
        for file in files:
            model = find("models", file, "MODEL")
            if model.__name__ == name:
                return model
    raise AttributeError(f"module 'physsm.models' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(find("models", name, "MODEL").__name__ for name in names_in("models"))
