"""Settings that trained networks share."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from physsm.training.loop import TrainingSettings

# A slip of the finger, or a hostile model file, must not ask for more memory than there is.
WIDEST, DEEPEST = 2048, 32


class Perceptron(BaseModel):
    """A multilayer perceptron with hidden layers of one width."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    width: int = Field(default=64, ge=1, le=WIDEST)
    layers: int = Field(default=2, ge=0, le=DEEPEST)


class NetworkConfig(BaseModel):
    """Settings of every network: sizes of its windows, and its training.

    - `context`, `horizon`, `stride`: time steps of a training window and between windows; by
      default a half, a quarter and a twentieth of the median series, at most 200, 100 and 10 (with
      fewer than five series a tenth, a tenth and a sixtieth, at most 200, 300 and 10), or those of
      the protocol's windows.
    - `validation_stride`: time steps between the windows that select the best parameters, by
      default the horizon; fewer steps give more windows of a short validation part.
    - `hide`: share of measurements hidden from the encoder in training.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    context: int | None = Field(default=None, ge=2)
    horizon: int | None = Field(default=None, ge=1)
    stride: int | None = Field(default=None, ge=1)
    validation_stride: int | None = Field(default=None, ge=1)
    hide: float = Field(default=0.1, ge=0, lt=1)
    training: TrainingSettings = TrainingSettings()
