"""Building a network: encoder, inference, unit and decoder as the settings and scales ask."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from physsm.models._network.decoder import Decoder
from physsm.models.phy_ssm.abstract_unit import AbstractUnit
from physsm.models.phy_ssm.bypass_inputs import BypassInputs, PhySSMScales
from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.decoder import AbstractDecoder, StateDecoder
from physsm.models.phy_ssm.encoder import (
    AbstractEncoder,
    MeasuredStates,
    SequentialEncoder,
    corrected_states,
    free_latent,
    measurements_of_states,
)
from physsm.models.phy_ssm.free_unit import FreeUnit
from physsm.models.phy_ssm.inference import AbstractInference, EncoderInference
from physsm.models.phy_ssm.kalman_inference import KalmanInference
from physsm.models.phy_ssm.linear_bypass import LinearBypass
from physsm.models.phy_ssm.network import Network
from physsm.models.phy_ssm.unit import PhysicsUnit
from physsm.physics.system import System


def build_network(
    system: System | None, scales: PhySSMScales, config: Config, seed: int
) -> Network:
    """A network before its training; without a system, one with a free unit."""
    rng = np.random.default_rng(seed)
    for_encoder, for_state, for_unit, for_prior, for_decoder = rng.spawn(5)
    unit = (
        FreeUnit(scales.table, config, for_unit)
        if system is None
        else PhysicsUnit(system, scales, config, for_unit)
    )
    encoder, inference = _encoder_and_inference(
        unit, system is not None, scales, config, (for_encoder, for_state, for_prior)
    )
    return Network(
        encoder=encoder,
        inference=inference,
        unit=unit,
        decoder=_decoder(system, unit, scales, config, for_decoder),
        scales=scales,
        config=config,
    )


def _encoder_and_inference(
    unit: AbstractUnit,
    has_physics: bool,
    scales: PhySSMScales,
    config: Config,
    generators: tuple[Generator, Generator, Generator],
) -> tuple[AbstractEncoder, AbstractInference]:
    """A filter infers states that channels measure; elsewhere the encoder infers them, or a free
    latent that is mapped to them.
    """
    for_encoder, for_state, for_prior = generators
    states, per_series = scales.states, len(unit.per_series)
    maps_latent = has_physics and config.latent is not None
    is_measured = len(states.grounded_channels) > 0
    if has_physics and not maps_latent and config.inference == "kalman" and is_measured:
        if not len(states.free_channels):
            return MeasuredStates(scales), KalmanInference(scales, per_series, uses_encoder=False)
        readout = measurements_of_states(states)
        encoder = SequentialEncoder(scales, config, readout, 0, for_encoder)
        return encoder, KalmanInference(scales, per_series, uses_encoder=True)
    if has_physics and not maps_latent:
        readout = corrected_states(states)
    else:
        readout = free_latent(config.latent if maps_latent and config.latent else unit.size)
    encoder = SequentialEncoder(scales, config, readout, per_series, for_encoder)
    inference = EncoderInference(
        unit, readout.size, maps_latent=maps_latent, for_state=for_state, for_prior=for_prior
    )
    return encoder, inference


def _decoder(
    system: System | None,
    unit: AbstractUnit,
    scales: PhySSMScales,
    config: Config,
    rng: Generator,
) -> AbstractDecoder:
    """A decoder of states, wrapped in a linear bypass if the scales have one."""
    shape, size = config.decoder_perceptron, unit.extended_size
    if not scales.bypass.offsets:
        return StateDecoder(Decoder(scales.states, shape, size, rng))
    # Beside a bypass the decoder only corrects: at first it adds nothing.
    decoder = Decoder(scales.states, shape, size, rng, last_gain=0.0)
    return LinearBypass(decoder, BypassInputs.of(system, scales), scales.states)
