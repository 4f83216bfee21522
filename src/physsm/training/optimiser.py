"""The optimiser: Adam with parameter groups, a learning rate schedule and guarded updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, PyTree
from pydantic import BaseModel, ConfigDict, Field

from physsm.nn.parameter_groups import Group, groups_of

Schedule = Literal["constant", "one_cycle", "plateau"]


class OptimiserSettings(BaseModel):
    """Settings of Adam: learning rate, weight decay, and step sizes of parameter groups.

    `schedule`: `one_cycle` raises the rate to `learning_rate` over the first `warm_up` share of all
    steps and lowers it to a thousandth along a cosine; `plateau` divides it by five when the
    validation loss has not improved for `patience` validations.

    `squares_decay` is Adam's second decay rate. With the usual 0.999, the large gradients of a
    wrong start would slow down a training of a few hundred steps until its end.

    `constants_speed` multiplies the steps of physical constants and noises, `bypass_speed` those of
    a linear bypass, which starts from a least-squares fit. `weight_decay` applies to the parameters
    that are in no other group (see `physsm.nn.parameter_groups`).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    learning_rate: float = Field(default=3e-3, gt=0)
    schedule: Schedule = "one_cycle"
    warm_up: float = Field(default=0.1, ge=0, lt=1)
    patience: int = Field(default=100, ge=1)
    weight_decay: float = Field(default=0.0, ge=0)
    clip_norm: float | None = Field(default=1.0, gt=0)
    squares_decay: float = Field(default=0.95, gt=0, lt=1)
    constants_speed: float = Field(default=20.0, gt=0)
    bypass_speed: float = Field(default=1e-3, ge=0)


def make_optimiser(settings: OptimiserSettings, steps: int) -> optax.GradientTransformation:
    """Adam, with decoupled weight decay and a step size for each parameter group."""
    parts = [optax.clip_by_global_norm(settings.clip_norm)] if settings.clip_norm else []
    parts.append(optax.scale_by_adam(b2=settings.squares_decay))
    if settings.weight_decay:
        parts.append(optax.add_decayed_weights(settings.weight_decay, mask=_is_in("decayed")))
    parts += [
        optax.masked(optax.scale(settings.constants_speed), _is_in("physical")),
        optax.masked(optax.scale(settings.bypass_speed), _is_in("bypass")),
        optax.scale_by_learning_rate(_rate(settings, steps)),
    ]
    return optax.chain(*parts)


def start_state(optimiser: optax.GradientTransformation, params: PyTree) -> optax.OptState:
    """State of the optimiser before its first step: its counts and moments are all zero.

    It is that of `optimiser.init`, which would compile one program for each array.
    """

    def zeros(leaf: jax.ShapeDtypeStruct) -> Array:
        return jnp.asarray(np.zeros(leaf.shape, leaf.dtype))

    return jax.tree.map(zeros, jax.eval_shape(optimiser.init, params))


def _is_in(group: Group) -> Callable[[PyTree], PyTree[bool]]:
    """The mask of one group: from parameters to whether each of them is in it."""
    return lambda params: jax.tree.map(lambda own: own == group, groups_of(params))


def _rate(settings: OptimiserSettings, steps: int) -> optax.Schedule | float:
    if settings.schedule != "one_cycle":
        return settings.learning_rate
    return optax.warmup_cosine_decay_schedule(
        init_value=settings.learning_rate / 25,
        peak_value=settings.learning_rate,
        warmup_steps=max(1, round(settings.warm_up * steps)),
        decay_steps=max(2, steps),
        end_value=settings.learning_rate / 1000,
    )


def guarded_update(
    optimiser: optax.GradientTransformation,
    params: PyTree,
    state: optax.OptState,
    loss: Array,
    gradient: PyTree,
    factor: Array,
) -> tuple[PyTree, optax.OptState, Array]:
    """One update with its step size multiplied by `factor`, or none if the loss or its gradient is
    not finite.

    Returns the parameters, the optimiser's state, and whether the update was made.
    """
    taken = jnp.isfinite(loss) & jnp.isfinite(optax.tree.norm(gradient))
    harmless = jax.tree.map(lambda g: jnp.where(taken, g, jnp.zeros_like(g)), gradient)
    with jax.numpy_dtype_promotion("standard"):  # Optax counts steps in integers
        updates, new_state = optimiser.update(harmless, state, params)
    updates = jax.tree.map(lambda u: u * factor, updates)
    new_params = optax.apply_updates(params, updates)

    def chosen(new: Array, old: Array) -> Array:
        return jnp.where(taken, new, old)

    return (
        jax.tree.map(chosen, new_params, params),
        jax.tree.map(chosen, new_state, state),
        taken,
    )
