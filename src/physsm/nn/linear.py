"""A linear map of the last axis."""

from __future__ import annotations

import math

from jaxtyping import Array, Float


def linear(
    W: Float[Array, "outputs inputs"], x: Float[Array, "*rest inputs"]
) -> Float[Array, "*rest outputs"]:
    """W x for every vector along the last axis.

    All of them are first made the rows of one matrix: XLA multiplies matrices several times faster
    than arrays with more axes, above all for the gradient of W.
    """
    if x.ndim == 1:
        return W @ x
    rest = x.shape[:-1]
    return (x.reshape(math.prod(rest), x.shape[-1]) @ W.T).reshape(*rest, W.shape[0])
