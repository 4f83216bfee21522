"""The decoder of a trajectory: channels from its states and the controls."""

from __future__ import annotations

import equinox as eqx
from jaxtyping import Array, Float
from numpy.random import Generator

from physsm.models._encode_decode.config import EncodeDecodeConfig
from physsm.models._encode_decode.scales import TrajectoryScales
from physsm.models._network.decoder import Decoder
from physsm.nn.layers import on_last_axis
from physsm.nn.mlp import MLP


class TrajectoryDecoder(eqx.Module):
    """A decoder of states and of a code of the controls, which do not enter the trajectory."""

    control_encoder: MLP | None
    decoder: Decoder
    scales: TrajectoryScales

    def __init__(
        self, scales: TrajectoryScales, config: EncodeDecodeConfig, size: int, rng: Generator
    ):
        self.scales = scales
        controls, shape = len(scales.table.controls), config.control_perceptron
        is_free = len(scales.states.free_channels) > 0
        self.control_encoder, code = None, 0
        if controls and is_free:
            code = shape.width
            self.control_encoder = MLP(controls, code, shape.layers, code, rng)
        self.decoder = Decoder(scales.states, config.decoder_perceptron, size, rng, extra=code)

    def __call__(
        self, z: Float[Array, "*steps d"], controls: Float[Array, "*steps controls"]
    ) -> Float[Array, "*steps channels"]:
        """Scaled channels along a trajectory."""
        offset = self.scales.states.state_offset
        centred = z - on_last_axis(offset, z) if len(offset) else z
        if self.control_encoder is None:
            return self.decoder(centred)
        return self.decoder(
            centred, self.control_encoder(self.scales.table.scale_controls(controls))
        )
