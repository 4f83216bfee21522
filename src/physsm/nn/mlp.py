"""Multilayer perceptrons on the last axis of an array of any shape."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from physsm.nn.layers import linear, on_last_axis, parameter
from physsm.nn.parameter_groups import UNDECAYED

Activation = Literal["relu", "softplus", "gelu", "sigmoid", "tanh"]
_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "softplus": jax.nn.softplus,
    "gelu": jax.nn.gelu,
    "sigmoid": jax.nn.sigmoid,
    "tanh": jnp.tanh,
}


class Dense(eqx.Module):
    """Affine map of the last axis; weights and biases start from U(±gain/√inputs)."""

    W: Float[Array, "outputs inputs"]
    b: Float[Array, " outputs"] = eqx.field(metadata=UNDECAYED)

    def __init__(self, inputs: int, outputs: int, rng: np.random.Generator, gain: float = 1.0):
        limit = gain / np.sqrt(max(inputs, 1))
        self.W = parameter(limit * rng.uniform(-1, 1, (outputs, inputs)))
        self.b = parameter(limit * rng.uniform(-1, 1, outputs))

    def __call__(self, x: Float[Array, "*rest inputs"]) -> Float[Array, "*rest outputs"]:
        """Apply to the last axis."""
        return linear(self.W, x) + on_last_axis(self.b, x)


class MLP(eqx.Module):
    """Multilayer perceptron with hidden layers of one width, residual from the second one on."""

    layers: tuple[Dense, ...]
    activation: Activation = eqx.field(static=True)
    last_activation: Activation | None = eqx.field(static=True)

    def __init__(
        self,
        inputs: int,
        hidden: int,
        hidden_layers: int,
        outputs: int,
        rng: np.random.Generator,
        *,
        activation: Activation = "relu",
        last_activation: Activation | None = None,
        last_gain: float = 1.0,
    ):
        sizes = [inputs] + [hidden] * hidden_layers
        hidden_maps = [Dense(a, b, rng) for a, b in itertools.pairwise(sizes)]
        self.layers = (*hidden_maps, Dense(sizes[-1], outputs, rng, last_gain))
        self.activation = activation
        self.last_activation = last_activation

    def __call__(self, x: Float[Array, "*rest inputs"]) -> Float[Array, "*rest outputs"]:
        """Apply to the last axis."""
        activation = _ACTIVATIONS[self.activation]
        for i, layer in enumerate(self.layers[:-1]):
            y = activation(layer(x))
            x = y if i == 0 else x + y
        x = self.layers[-1](x)
        return _ACTIVATIONS[self.last_activation](x) if self.last_activation else x
