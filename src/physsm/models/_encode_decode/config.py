"""Settings of encode-decode models, which predict one trajectory from the latents of a window."""

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

    - `encoder_perceptron`: the network that encodes each time step.
    - `decoder_perceptron`: the network that decodes channels from the trajectory.
    - `control_perceptron`: the network that encodes the controls, as inputs of the decoder.
    - `curriculum`: share of the training in which the weighted part of a window grows from its
      first tenth to all of it. The end of a trajectory with a wrong start teaches nothing.
    """

    encoder_perceptron: Perceptron = Perceptron(width=64, layers=1)
    decoder_perceptron: Perceptron = Perceptron(width=64, layers=1)
    control_perceptron: Perceptron = Perceptron(width=16, layers=1)
    curriculum: float = Field(default=0.4, ge=0, le=1)
    # A trajectory is learned from its start to its end: in more and larger steps than Phy-SSM's.
    training: TrainingSettings = TrainingSettings(
        steps=1500, optimiser=OptimiserSettings(learning_rate=1e-2)
    )


class LatentConfig(EncodeDecodeConfig):
    """Settings of models that infer a distribution of latents; a draw determines the trajectory.

    - `encoder`: the recurrent network over the time steps, from the last to the first.
    - `latent`: the number of latents of a window.
    - `beta`: weight of the KL divergence, a mean over dimensions.
    - `anneal`: share of the training in which that weight grows from zero.
    - `samples`: draws for the spread of a forecast.
    """

    encoder: Recurrent = Recurrent()
    latent: int = Field(default=8, ge=1, le=WIDEST)
    beta: float = Field(default=1e-4, ge=0)
    anneal: float = Field(default=0.2, ge=0, le=1)
    samples: int = Field(default=32, ge=2, le=10_000)


class ODEConfig(LatentConfig):
    """Settings of models whose trajectory solves a differential equation.

    - `drift`: the network that is its right-hand side, or a term of it.
    - `solver`: tolerances and the most steps of the solver.
    """

    drift: Perceptron = Perceptron(width=64, layers=2)
    solver: SolverSettings = SolverSettings()


class PhysicsConfig(ODEConfig):
    """Settings of models whose differential equation contains known physics.

    - `ground_states`: channels with the name of a state are that state, without a decoder network.
    - `controls_in_physics`: the equations use the controls, linear between time steps. If not, as
      in the paper's comparison, they use the means of the controls, and only the decoder reads the
      controls.
    - `start_perceptron`: the network from the latent start to the initial states.
    """

    ground_states: bool = True
    controls_in_physics: bool = True
    start_perceptron: Perceptron = Perceptron(width=64, layers=1)
