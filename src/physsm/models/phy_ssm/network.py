"""The network, as in Figure 1 of the paper: encoder → inference → unit → decoder.

Inside the context every prediction starts from the inferred state (one step ahead). After it, the
unit continues from its own predictions (rollout). `observe` is encoder and inference, which calls
the unit; `rollout` is the unit; `one_step` and `future_channels` are the decoder. `predict` in
`objective.py` joins them for training, `forecast.py` for forecasts. Arrays are time-major: of one
series, or of a batch of them.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from physsm.models._network.observations import Observations
from physsm.models.phy_ssm.abstract_unit import AbstractUnit
from physsm.models.phy_ssm.bypass_inputs import PhySSMScales
from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.decoder import AbstractDecoder
from physsm.models.phy_ssm.encoder import AbstractEncoder
from physsm.models.phy_ssm.inference import AbstractInference, over_axes
from physsm.models.phy_ssm.kalman_inference import KalmanInference
from physsm.models.phy_ssm.values import Boundary, Drive, Inferred, Rollout
from physsm.nn.recompute import lean_scan


class Network(eqx.Module):
    """Phy-SSM. With a `FreeUnit` it is the same without physics: a plain S5 latent model."""

    encoder: AbstractEncoder
    inference: AbstractInference
    unit: AbstractUnit
    decoder: AbstractDecoder
    scales: PhySSMScales
    config: Config = eqx.field(static=True)

    @property
    def dtype(self) -> jnp.dtype:
        """The precision of the parameters."""
        return self.unit.dtype

    @property
    def starts_well(self) -> bool:
        """Whether forecasts are good before any training: by a grey box or a linear bypass."""
        return self.decoder.starts_well or (self.config.grey_box and self.is_grounded)

    @property
    def is_grounded(self) -> bool:
        """Whether the physics gives every channel, and a filter infers the states."""
        has_filter = isinstance(self.inference, KalmanInference)
        return has_filter and not len(self.scales.states.free_channels)

    @property
    def holds_previous(self) -> Bool[np.ndarray, " controls"]:
        """Which controls keep their value until the next time step."""
        return self.unit.holds_previous

    @property
    def identity(self) -> str:
        """All but its parameters: networks with the same identity are built the same, however they
        are trained.
        """
        config = self.config.model_dump(exclude={"training"})
        return repr((self.unit.text, self.scales.structure, config))

    def start(self) -> Boundary:
        """A series before its first time step."""
        latent = self.inference.start(self.unit)
        u = jnp.zeros(len(self.scales.table.controls), self.dtype)
        return Boundary(
            encoder=self.encoder.start(self.dtype),
            latent=latent,
            unit=self.unit.start_state(latent.z_ext, u),
            decoder=self.decoder.start(self.dtype),
            control=u,
        )

    def observe(self, rows: Observations, key: PRNGKeyArray | None) -> tuple[Inferred, Boundary]:
        """Infer the states of a context and predict each next step; means if there is no key."""
        encoded, encoder_states = self.encoder(rows)
        inferred = self.inference.infer(self.unit, rows, encoded, key)
        boundary = Boundary(
            encoder=encoder_states,
            latent=inferred.latent,
            unit=inferred.unit,
            decoder=self.decoder.last_lags(rows),
            control=rows.controls[-1],
        )
        return inferred, boundary

    def update(self, before: Boundary, row: Observations) -> Boundary:
        """The boundary after one more time step, as `observe` gives it for all steps so far."""
        encoded, encoder_states = self.encoder.step(row, before.encoder)
        after = self.inference.update(self.unit, before, row, encoded)
        lags = self.decoder.update(before.decoder, row)
        return after._replace(encoder=encoder_states, decoder=lags)

    def one_step(
        self, rows: Observations, inferred: Inferred
    ) -> Float[Array, "before *batch channels"]:
        """Scaled channels of each time step but the first, predicted from the steps before it."""
        channels = self.decoder.one_step(rows, self.unit.centred(inferred.predicted))
        return self._with_observations(channels, inferred.predicted, rows.controls[1:])

    def decode(
        self, z_ext: Float[Array, "*steps d"], controls: Float[Array, "*steps controls"]
    ) -> Float[Array, "*steps channels"]:
        """Scaled channels of extended states."""
        channels = self.decoder.decode(self.unit.centred(z_ext))
        return self._with_observations(channels, z_ext, controls)

    def _with_observations(self, channels: Array, z_ext: Array, controls: Array) -> Array:
        """The channels, of which functions of the state come from the unit."""
        places = self.scales.states.expression_channels
        if not len(places):
            return channels
        values = over_axes(self.unit.observe, z_ext.ndim - 1)(z_ext, controls)
        return channels.at[..., places].set(values[..., places])

    def draw(self, boundary: Boundary, key: PRNGKeyArray) -> Boundary:
        """The boundary with a draw of its latent state instead of the mean."""
        return boundary._replace(latent=self.inference.draw(self.unit, boundary.latent, key))

    def rollout(
        self,
        boundary: Boundary,
        controls: Float[Array, "steps controls"],
        gaps: Float[Array, " steps"],
        key: PRNGKeyArray | None = None,
    ) -> Rollout:
        """Continue from the boundary; `gaps[k]` is the time before future step k.

        With a key, each step adds a draw of the process noise.
        """
        unit, terms = self.unit, boundary.latent.series_terms

        def body(carry: tuple[Array, Array, Array, Array], inputs: Any):
            z_ext, features, unit_states, u = carry
            u_next, gap, discrete, noise = inputs
            theta = unit.theta(features, terms)
            z_next = unit.advance(z_ext, theta, Drive(u, u_next, gap))
            if key is not None:
                z_next = self.inference.disturb(unit, z_next, noise, gap)
            z_next = unit.clip(z_next)
            features, unit_states = unit.feature_step(z_next, u_next, discrete, unit_states)
            return (z_next, features, unit_states, u_next), (z_next, theta)

        shape = (gaps.shape[0], self.inference.noise_size if key is not None else 0)
        noise = jnp.zeros(shape, self.dtype)
        noise = noise if key is None else jr.normal(key, shape, self.dtype)
        state = boundary.unit
        initial = (boundary.latent.z_ext, state.features, state.carry, boundary.control)
        inputs = (controls, gaps, unit.discrete(gaps), noise)
        _, (z_ext, theta) = lean_scan(body, initial, inputs)
        return Rollout(z_ext, theta)

    def future_channels(
        self,
        boundary: Boundary,
        z_ext: Float[Array, "steps d"],
        controls: Float[Array, "steps controls"],
        gaps: Float[Array, " steps"],
    ) -> Float[Array, "steps channels"]:
        """Scaled channels along a rollout from the boundary."""
        channels = self.decoder.rollout(boundary.decoder, self.unit.centred(z_ext), controls, gaps)
        return self._with_observations(channels, z_ext, controls)
