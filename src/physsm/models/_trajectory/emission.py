"""Channels from a path and the controls beside it."""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Float
from numpy.random import Generator

from physsm.models._latent.decoder import Decoder
from physsm.models._latent.plan import Plan
from physsm.models._trajectory.config import PathConfig
from physsm.nn.layers import on_last_axis
from physsm.nn.mlp import MLP


class Emission(eqx.Module):
    """A decoder of the path, joined with a code of the controls: these do not enter the path."""

    control_encoder: MLP | None
    decoder: Decoder
    plan: Plan = eqx.field(static=True)

    def __init__(self, plan: Plan, config: PathConfig, size: int, rng: Generator):
        self.plan = plan
        controls, shape = len(plan.controls), config.control_perceptron
        is_free = any(state < 0 for state in plan.grounded)
        self.control_encoder, code = None, 0
        if controls and is_free:
            code = shape.width
            self.control_encoder = MLP(controls, code, shape.layers, code, rng)
        self.decoder = Decoder(plan, config.decoder_perceptron, size, rng, code)

    def __call__(
        self, z: Float[Array, "*steps d"], controls: Float[Array, "*steps controls"]
    ) -> Float[Array, "*steps channels"]:
        """Scaled channels along a path."""
        offset = self.plan.state_offset
        centred = z - on_last_axis(offset, z) if offset else z
        if self.control_encoder is None:
            return self.decoder(centred)
        return self.decoder(centred, self.control_encoder(self.plan.scale_controls(controls)))
