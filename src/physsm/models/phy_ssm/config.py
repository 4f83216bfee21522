"""The settings of Phy-SSM, and its two presets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from numpy.random import Generator
from pydantic import BaseModel, ConfigDict, Field

from physsm._arguments import merged
from physsm.models._network.config import DEEPEST, WIDEST, NetworkConfig, Perceptron
from physsm.nn.discretise import Discretisation
from physsm.nn.s5 import S5Stack, Skip
from physsm.training.loop import TrainingSettings
from physsm.training.optimiser import OptimiserSettings

Preset = Literal["default", "paper"]
Hold = Literal["auto", "previous", "linear", "mean"]


class Stack(BaseModel):
    """An S5 stack. A `width` of None means that of its input, as in the paper's unit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    width: int | None = Field(default=32, ge=1, le=WIDEST)
    states: int = Field(default=32, ge=2, le=WIDEST, multiple_of=2)
    depth: int = Field(default=2, ge=1, le=DEEPEST)


class Config(NetworkConfig):
    """Settings of Phy-SSM, beside those of all networks.

    - `ground_states`: channels with the name of a state are that state, without a decoder network.
    - `samples`: draws behind an interval.
    - `latent`: size of the sampled latent, mapped linearly to the states; None: the states.
    - `physical_units`: scale states by their data and time by the median gap, so that the known
      terms hold in the user's units; else the structure acts on a free latent.
    - `linear_bypass`: a channel that measures no state continues from its last value by a linear
      function of the time steps before, to which the decoder adds; only where times are nearly
      regular.
    - `inference`: `kalman`: a Kalman filter around the unit infers the states, with the encoder's
      outputs as measurements, and the `per series` unknowns. `encoder`, and wherever no channel
      measures a state: the encoder alone infers them, as in the paper.
    - `unknown_network`: the network that predicts the varying unknowns; `none`: they are constant.
    - `unknown_gain`: gain of its last layer before training; 0: it starts from constants.
    - `control_hold`: a control between two time steps keeps its value (`previous`, as behind a
      digital controller), changes linearly (`linear`), or acts by the mean of both ends (`mean`).
      `auto`: the grey box chooses on the validation part; `previous` where there is none. The
      physics text decides for controls that it declares (`control u hold linear`).
    - `grey_box`: fit constants, initial states and noises by least squares before the network; only
      where every channel is a state or an observation of the physics.
    - `refit`: fit the grey box again to all rows, validation included, after the choices. A network
      is trained again where the validation part is the end of the training series.
    - `correct`: evaluate the coefficients at the middle of the step (a second solve): second order
      for nonlinear systems too.
    - `substeps`: equal parts in which the unit crosses each gap. The error of a step, which biases
      an unknown constant, falls with their square. None: two, or as many as the grey box needs to
      keep that bias below the standard errors of the constants.
    - `relift`: lifted states are computed again from the states after each step of a rollout.
    - `beta`, `lambda_`: weights of the KL term and of the physics state regulariser; `anneal`:
      share of the training over which beta grows from zero.
    - `likelihood`: weight of the filter's negative log likelihood of measured states, one step
      ahead: it makes estimates of constants and noises unbiased. Unless it is given, the grey box
      lowers it to 0.1 where that forecasts the validation part better.
    - `curriculum`: share of the training over which the rollout in the loss grows to its length:
      long rollouts of a wrong model have misleading gradients.
    """

    ground_states: bool = True
    samples: int = Field(default=64, ge=2, le=10_000)
    encoder: Stack = Stack(width=32, states=32, depth=3)
    encoder_perceptron: Perceptron = Perceptron(width=64, layers=2)
    decoder_perceptron: Perceptron = Perceptron(width=64, layers=2)
    latent: int | None = Field(default=None, ge=1, le=WIDEST)
    unit: Stack = Stack(width=32, states=32, depth=2)
    inference: Literal["kalman", "encoder"] = "kalman"
    unknown_network: Literal["s5", "mlp", "none"] = "s5"
    unknown_hidden: int = Field(default=32, ge=1, le=WIDEST)
    unknown_gain: float = Field(default=0.0, ge=0, le=1)
    discretisation: Discretisation = "zoh"
    skip: Skip = "raw"
    physical_units: bool = True
    linear_bypass: bool = True
    control_hold: Hold = "auto"
    grey_box: bool = True
    refit: bool = True
    correct: bool = True
    substeps: int | None = Field(default=None, ge=1, le=100)
    relift: bool = True
    beta: float = Field(default=1e-3, ge=0)
    lambda_: float = Field(default=0.1, ge=0, alias="lambda")
    regulariser: Literal["euclidean", "cosine", "chebyshev"] = "euclidean"
    likelihood: float = Field(default=1.0, ge=0)
    anneal: float = Field(default=0.2, ge=0, le=1)
    curriculum: float = Field(default=0.5, ge=0, le=1)


PAPER: dict[str, Any] = {
    "encoder": {"width": 32, "states": 32, "depth": 5},
    "encoder_perceptron": {"width": 200, "layers": 3},
    "decoder_perceptron": {"width": 200, "layers": 3},
    "latent": 16,
    "unit": {"width": None, "states": 128, "depth": 4},
    "unknown_hidden": 128,
    "unknown_gain": 0.01,
    "control_hold": "previous",
    "grey_box": False,
    "refit": False,
    "skip": "normalised",
    "physical_units": False,
    "ground_states": False,
    "linear_bypass": False,
    "inference": "encoder",
    "correct": False,
    "substeps": 1,
    "relift": False,
    "hide": 0.0,
    "beta": 1.0,
    "lambda": 100.0,
    "anneal": 0.0,
    "curriculum": 0.0,
    "training": TrainingSettings(
        epochs=20,
        batch_size=64,
        optimiser=OptimiserSettings(
            learning_rate=1e-4,
            schedule="plateau",
            clip_norm=1.0,
            squares_decay=0.999,
            constants_speed=10.0,
        ),
    ).model_dump(),
}
PRESETS: dict[str, dict[str, Any]] = {"default": {}, "paper": PAPER}


def preset_settings(preset: Preset, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a preset with some of them changed; tables are merged, not replaced."""
    return merged(PRESETS[preset], changes)


def make_stack(stack: Stack, width: int, config: Config, rng: Generator) -> S5Stack:
    """An S5 stack of the given width, in the discretisation and form of the whole network."""
    return S5Stack(
        stack.depth,
        width,
        stack.states,
        rng,
        discretisation=config.discretisation,
        skip=config.skip,
    )
