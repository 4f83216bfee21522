"""Which optimiser updates which parameter, and how its learning rate runs."""

from __future__ import annotations

from typing import Literal

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, PyTree
from pydantic import BaseModel, ConfigDict, Field

Schedule = Literal["constant", "one_cycle", "plateau"]


class OptimiserSettings(BaseModel):
    """How parameters are updated.

    `one_cycle` rises to `learning_rate` over the first `warm_up` share of all steps and falls to a
    thousandth of it along a cosine. `plateau` divides the rate by five when the validation loss has
    not improved for `patience` validations. `squares_decay` is Adam's second: with the usual 0.999
    the large gradients of a wrong start would hold back a training of a few hundred steps to its
    end. `constants_speed` multiplies the steps of physical constants and noises, `direct_speed`
    those of a direct path, which starts as the best linear one. `weight_decay` leaves alone what it
    would harm: the state space parameters, norms, biases, physical constants and a direct path.
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
    direct_speed: float = Field(default=1e-3, ge=0)


# Parameters by the name of their field: what decay would harm, and physical constants.
_CONSTANTS = {"constants", "log_noise", "log_error", "log_apart"}
_DIRECT = {"direct_run", "direct_next", "direct_short"}
_UNDECAYED = {"rate", "log_step", "D", "norms", "b"} | _CONSTANTS | _DIRECT


def _field_name(path: tuple[object, ...]) -> str:
    names = [str(getattr(part, "name", "")) for part in path if hasattr(part, "name")]
    return names[-1] if names else ""


def _marked(params: PyTree, names: set[str]) -> PyTree:
    return jax.tree_util.tree_map_with_path(lambda path, _: _field_name(path) in names, params)


def make_optimiser(settings: OptimiserSettings, steps: int) -> optax.GradientTransformation:
    """Adam, with decoupled weight decay where it is asked for and does no harm."""
    parts = [optax.clip_by_global_norm(settings.clip_norm)] if settings.clip_norm else []
    parts.append(optax.scale_by_adam(b2=settings.squares_decay))
    if settings.weight_decay:
        parts.append(
            optax.add_decayed_weights(
                settings.weight_decay,
                mask=lambda params: jax.tree.map(
                    lambda undecayed: not undecayed, _marked(params, _UNDECAYED)
                ),
            )
        )
    parts.append(
        optax.masked(
            optax.scale(settings.constants_speed), lambda params: _marked(params, _CONSTANTS)
        )
    )
    parts.append(
        optax.masked(optax.scale(settings.direct_speed), lambda params: _marked(params, _DIRECT))
    )
    parts.append(optax.scale_by_learning_rate(_rate(settings, steps)))
    return optax.chain(*parts)


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
    """One update, its size times `factor`; nothing changes if loss or gradient are not finite.

    Returns the parameters, the optimiser's state, and whether the step was taken.
    """
    taken = jnp.isfinite(loss) & jnp.isfinite(optax.tree.norm(gradient))
    harmless = jax.tree.map(lambda g: jnp.where(taken, g, jnp.zeros_like(g)), gradient)
    with jax.numpy_dtype_promotion("standard"):  # Optax counts steps in integers
        updates, new_state = optimiser.update(harmless, state, params)
    updates = jax.tree.map(lambda u: u * factor, updates)
    new_params = optax.apply_updates(params, updates)

    def keep(new: Array, old: Array) -> Array:
        return jnp.where(taken, new, old)

    return (
        jax.tree.map(keep, new_params, params),
        jax.tree.map(keep, new_state, state),
        taken,
    )
