"""What a model that predicts along a path implements, and what all of them do with it."""

from __future__ import annotations

import abc
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from physsm.models._latent.objective import ramp
from physsm.models._latent.plan import Plan
from physsm.models._latent.rows import Observations
from physsm.models._trajectory.emission import Emission
from physsm.models._trajectory.values import Course, Path, Window
from physsm.nn.gaussian import Gaussian, kl, sample


class Trajectory(eqx.Module):
    """A model that infers something of a window, and from it follows one path through all times.

    `infer` works on a batch, series after time; of what it gives, series come first. `draw`, `path`
    and `unknowns` take one series. All but `infer` and `path` may be left as they are.
    """

    emission: Emission
    plan: Plan = eqx.field(static=True)
    config: Any = eqx.field(static=True)  # a PathConfig

    @abc.abstractmethod
    def infer(self, rows: Observations) -> Any:
        """What the rows of a window say: Gaussians, by default."""

    @abc.abstractmethod
    def path(self, start: Any, times: Float[Array, " times"], course: Course) -> Path:
        """The path at times, in any order but increasing if they are many, from what was drawn."""

    def draw(self, inferred: Any, key: PRNGKeyArray | None) -> Any:
        """A draw of what was inferred; its means if there is no key."""
        parts, structure = jax.tree.flatten(inferred, is_leaf=_is_gaussian)
        if key is None:
            return structure.unflatten([part.mean for part in parts])
        keys = jr.split(key, max(len(parts), 1))
        return structure.unflatten([sample(*one) for one in zip(parts, keys, strict=True)])

    def divergence(self, window: Window, inferred: Any, path: Path) -> Float[Array, ""]:
        """From what is thought before a window is seen: independent standard Gaussians."""
        parts = jax.tree.leaves(inferred, is_leaf=_is_gaussian)
        terms = [kl(part, _standard(part)).mean() for part in parts if part.mean.size]
        return sum(terms, jnp.zeros((), self.dtype))

    def penalty(
        self, window: Window, inferred: Any, start: Any, path: Path, key: PRNGKeyArray | None
    ) -> Float[Array, ""]:
        """What a method adds to its objective."""
        return jnp.zeros((), self.dtype)

    def decode(
        self, z: Float[Array, "*steps d"], controls: Float[Array, "*steps controls"]
    ) -> Float[Array, "*steps channels"]:
        """Scaled channels along a path."""
        return self.emission(z, controls)

    def unknowns(self, start: Any) -> Float[Array, " unknowns"]:
        """The unknowns of the physics, in physical units."""
        return jnp.zeros(0, self.dtype)

    def beta(self, progress: Array) -> Array:
        """The weight of the divergence, which grows at the beginning of the training."""
        return self.config.beta * ramp(progress, self.config.anneal)

    @property
    def samples(self) -> int:
        """Draws behind the spread of a forecast; none if nothing is uncertain."""
        return self.config.samples

    # What all do.

    @property
    def dtype(self) -> Any:
        """The precision of the parameters."""
        return jax.tree.leaves(eqx.filter(self, eqx.is_inexact_array))[0].dtype

    @property
    def starts_well(self) -> bool:
        """Before training it knows nothing."""
        return False

    @property
    def physics_text(self) -> str | None:
        """The text of its physics, if it has some."""
        return None

    @property
    def identity(self) -> str:
        """All but its parameters: networks with the same are built the same."""
        kind = f"{type(self).__module__}.{type(self).__qualname__}"
        return repr((kind, self.physics_text, self.plan, self.config))

    def starts(self, inferred: Any, key: PRNGKeyArray | None) -> Any:
        """A draw for each series."""
        if key is None:
            return jax.vmap(lambda one: self.draw(one, None))(inferred)
        number = jax.tree.leaves(inferred)[0].shape[0]
        return jax.vmap(self.draw)(inferred, jr.split(key, number))

    def paths(self, starts: Any, times: Float[Array, "times batch"], course: Course) -> Path:
        """The path of each series at times of its own."""
        along = jax.vmap(self.path, in_axes=(0, 1, 1), out_axes=1)
        return along(starts, times, course)

    @property
    def pace(self) -> float:
        """What a learned drift is multiplied by: a training window then lasts ten units of time."""
        return 10.0 / self.plan.span

    @property
    def node(self) -> float:
        """Where steps of a solver end: at quarters of a training window."""
        return self.plan.span / 4


def _is_gaussian(part: Any) -> bool:
    return isinstance(part, Gaussian)


def _standard(like: Gaussian) -> Gaussian:
    return Gaussian(jnp.zeros_like(like.mean), jnp.ones_like(like.std))
