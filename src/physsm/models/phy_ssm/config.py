"""The settings of Phy-SSM, and its two presets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from physsm._arguments import merged
from physsm.models._latent.settings import DEEPEST, WIDEST, NetworkConfig, Perceptron
from physsm.nn.s5 import Discretisation, Skip
from physsm.training.loop import TrainingSettings
from physsm.training.optimiser import OptimiserSettings

Preset = Literal["default", "paper"]


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
    - `direct`: a channel that measures no state goes on from its last value by a linear function of
      the rows before, to which the decoder adds; only where rows are nearly regular.
    - `assimilate`: a state is inferred by a Kalman filter around the unit, which takes what the
      encoder says as a measurement; the values of `per series` unknowns are inferred with it. Else,
      and where no channel measures a state, the encoder alone infers it, as in the paper.
    - `unknown_network`: what predicts the varying unknowns.
    - `control_hold`: a control keeps its value until the next row (`start`, as a digital
      controller does), or is a smooth signal of which a gap sees the mean of both ends (`mean`).
    - `correct`: evaluate the coefficients at the middle of the step (a second solve): second order
      for nonlinear systems too.
    - `substeps`: equal parts in which the unit takes each gap; the error of a step, which an
      unknown constant would make up for, falls with their square.
    - `relift`: lifted states are computed anew from the states after each step of a rollout.
    - `beta`, `lambda_`: weights of the KL term and of the physics state regulariser; `anneal`:
      share of the training over which beta grows from zero.
    - `surprise`: weight of minus the log likelihood of measured states, each given the rows before
      it, under the filter: what makes constants and noises come out unbiased.
    - `curriculum`: share of the training over which the rollout that counts grows to its length:
      long rollouts of a wrong model have gradients that mislead.
    """

    ground_states: bool = True
    samples: int = Field(default=64, ge=2, le=10_000)
    encoder: Stack = Stack(width=32, states=32, depth=3)
    encoder_perceptron: Perceptron = Perceptron(width=64, layers=2)
    decoder_perceptron: Perceptron = Perceptron(width=64, layers=2)
    latent: int | None = Field(default=None, ge=1, le=WIDEST)
    unit: Stack = Stack(width=32, states=32, depth=2)
    assimilate: bool = True
    unknown_network: Literal["s5", "mlp"] = "s5"
    unknown_hidden: int = Field(default=32, ge=1, le=WIDEST)
    discretisation: Discretisation = "zoh"
    skip: Skip = "raw"
    physical_units: bool = True
    direct: bool = True
    control_hold: Literal["start", "mean"] = "start"
    correct: bool = True
    substeps: int = Field(default=2, ge=1, le=100)
    relift: bool = True
    beta: float = Field(default=1e-3, ge=0)
    lambda_: float = Field(default=0.1, ge=0, alias="lambda")
    regulariser: Literal["euclidean", "cosine", "chebyshev"] = "euclidean"
    surprise: float = Field(default=1.0, ge=0)
    anneal: float = Field(default=0.2, ge=0, le=1)
    curriculum: float = Field(default=0.5, ge=0, le=1)


PAPER: dict[str, Any] = {
    "encoder": {"width": 32, "states": 32, "depth": 5},
    "encoder_perceptron": {"width": 200, "layers": 3},
    "decoder_perceptron": {"width": 200, "layers": 3},
    "latent": 16,
    "unit": {"width": None, "states": 128, "depth": 4},
    "unknown_hidden": 128,
    "skip": "normalised",
    "physical_units": False,
    "ground_states": False,
    "direct": False,
    "assimilate": False,
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
