"""Settings of models that predict along one path from what they infer of a window."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from physsm.models._network.config import DEEPEST, WIDEST, NetworkConfig, Perceptron
from physsm.nn.ode import SolverSettings
from physsm.nn.recurrent import Cell
from physsm.training.loop import TrainingSettings
from physsm.training.optimiser import OptimiserSettings


class Recurrent(BaseModel):
    """A stack of recurrent layers."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    cell: Cell = "gru"
    width: int = Field(default=32, ge=1, le=WIDEST)
    depth: int = Field(default=1, ge=1, le=DEEPEST)


class EncodeDecodeConfig(NetworkConfig):
    """Settings beside those of all networks.

    - `encoder_perceptron`: what reads each row.
    - `control_perceptron`: what reads the controls, which the decoder is given beside the path.
    - `curriculum`: share of the training over which the part of a window that counts grows from its
      first tenth to all of it: a path that is wrong from its start learns nothing from its end.
    """

    encoder_perceptron: Perceptron = Perceptron(width=64, layers=1)
    decoder_perceptron: Perceptron = Perceptron(width=64, layers=1)
    control_perceptron: Perceptron = Perceptron(width=16, layers=1)
    curriculum: float = Field(default=0.4, ge=0, le=1)
    # A path is learned from its start to its end: in more and larger steps than Phy-SSM takes.
    training: TrainingSettings = TrainingSettings(
        steps=1500, optimiser=OptimiserSettings(learning_rate=1e-2)
    )


class LatentConfig(EncodeDecodeConfig):
    """Settings of models that infer a distribution, of which a draw decides the path.

    - `encoder`: what reads the sequence of rows, from the last to the first.
    - `latent`: the size of what is inferred of a window.
    - `beta`: weight of the KL term, a mean over dimensions; `anneal`: share of the training over
      which it grows from zero.
    - `samples`: draws behind the spread of a forecast.
    """

    encoder: Recurrent = Recurrent()
    latent: int = Field(default=8, ge=1, le=WIDEST)
    beta: float = Field(default=1e-4, ge=0)
    anneal: float = Field(default=0.2, ge=0, le=1)
    samples: int = Field(default=32, ge=2, le=10_000)


class ODEConfig(LatentConfig):
    """Settings of models whose path solves a differential equation.

    - `drift`: the network that is, or adds to, its right-hand side.
    - `solver`: how exactly it is solved.
    """

    drift: Perceptron = Perceptron(width=64, layers=2)
    solver: SolverSettings = SolverSettings()


class PhysicsConfig(ODEConfig):
    """Settings of models whose differential equation holds known physics.

    - `ground_states`: channels with the name of a state are that state, without a decoder network.
    - `controls_in_physics`: the equations see the controls, along straight lines between rows. If
      not, as in the paper's comparison, they see their means, and only the decoder is given them.
    - `start_perceptron`: what makes states of the latent start.
    """

    ground_states: bool = True
    controls_in_physics: bool = True
    start_perceptron: Perceptron = Perceptron(width=64, layers=1)
