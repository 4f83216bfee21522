"""Base class of the networks of encode-decode models."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from physsm.models._encode_decode.decoder import TrajectoryDecoder
from physsm.models._encode_decode.scales import TrajectoryScales
from physsm.models._encode_decode.values import Timeline, Trajectory, Window
from physsm.models._network.observations import Observations
from physsm.models._network.reductions import ramp
from physsm.nn.gaussian import Gaussian, kl, sample
from physsm.nn.parameter_groups import is_parameter


class AbstractEncodeDecode(eqx.Module):
    """A network that infers latents of a window and, from them, one trajectory through all times.

    `infer` works on a batch, series after time; in its result series come first. `draw`,
    `trajectory` and `unknowns` take one series. A model implements `infer` and `trajectory`. It may
    override the methods up to the heading "What a model inherits".
    """

    decoder: TrajectoryDecoder
    scales: TrajectoryScales
    config: Any = eqx.field(static=True)  # an EncodeDecodeConfig

    @abc.abstractmethod
    def infer(self, rows: Observations) -> Any:
        """The inferred latents of each window: Gaussians, by default."""

    @abc.abstractmethod
    def trajectory(
        self, start: Any, times: Float[Array, " times"], timeline: Timeline
    ) -> Trajectory:
        """States at increasing times, from drawn latents."""

    def draw(self, inferred: Any, key: PRNGKeyArray | None) -> Any:
        """A draw of the inferred latents; their means if there is no key."""
        parts, structure = jax.tree.flatten(inferred, is_leaf=_is_gaussian)
        if key is None:
            return structure.unflatten([part.mean for part in parts])
        keys = jr.split(key, max(len(parts), 1))
        return structure.unflatten([sample(*one) for one in zip(parts, keys, strict=True)])

    def divergence(self, window: Window, inferred: Any, trajectory: Trajectory) -> Float[Array, ""]:
        """KL divergence from the prior: independent standard Gaussians."""
        parts = jax.tree.leaves(inferred, is_leaf=_is_gaussian)
        terms = [kl(part, _standard(part)).mean() for part in parts if part.mean.size]
        return sum(terms, jnp.zeros((), self.dtype))

    def penalty(
        self,
        window: Window,
        inferred: Any,
        start: Any,
        trajectory: Trajectory,
        key: PRNGKeyArray | None,
    ) -> Float[Array, ""]:
        """Further terms of a method's objective."""
        return jnp.zeros((), self.dtype)

    def decode(
        self, z: Float[Array, "*steps d"], controls: Float[Array, "*steps controls"]
    ) -> Float[Array, "*steps channels"]:
        """Scaled channels along a trajectory."""
        return self.decoder(z, controls)

    def unknowns(self, start: Any) -> Float[Array, " unknowns"]:
        """The unknowns of the physics, in physical units."""
        return jnp.zeros(0, self.dtype)

    def beta(self, progress: Array) -> Array:
        """The weight of the divergence, which grows at the beginning of the training."""
        return self.config.beta * ramp(progress, self.config.anneal)

    @property
    def samples(self) -> int:
        """Draws for the spread of a forecast; 0 if nothing is uncertain."""
        return self.config.samples

    # What a model inherits.

    @property
    def dtype(self) -> Any:
        """The precision of the parameters."""
        return jax.tree.leaves(eqx.filter(self, is_parameter))[0].dtype

    @property
    def starts_well(self) -> bool:
        """Whether forecasts are good before any training."""
        return False

    @property
    def physics_text(self) -> str | None:
        """The text of the physics; None without physics."""
        return None

    @property
    def identity(self) -> str:
        """All but its parameters: networks with the same identity are built the same, however they
        are trained.
        """
        kind = f"{type(self).__module__}.{type(self).__qualname__}"
        config = self.config.model_dump(exclude={"training"})
        return repr((kind, self.physics_text, self.scales.structure, config))

    def starts(self, inferred: Any, key: PRNGKeyArray | None) -> Any:
        """A draw of the latents of each series; means if there is no key."""
        if key is None:
            return jax.vmap(lambda one: self.draw(one, None))(inferred)
        number = jax.tree.leaves(inferred)[0].shape[0]
        return jax.vmap(self.draw)(inferred, jr.split(key, number))

    def trajectories(
        self, starts: Any, times: Float[Array, "times batch"], timeline: Timeline
    ) -> Trajectory:
        """The trajectory of each series at its own times."""
        along = jax.vmap(self.trajectory, in_axes=(0, 1, 1), out_axes=1)
        return along(starts, times, timeline)


def _is_gaussian(part: Any) -> bool:
    return isinstance(part, Gaussian)


def _standard(like: Gaussian) -> Gaussian:
    return Gaussian(jnp.zeros_like(like.mean), jnp.ones_like(like.std))
