"""S5 stacks as the settings describe them."""

from __future__ import annotations

import numpy as np

from physsm.models.phy_ssm.config import Config, Stack
from physsm.nn.s5 import S5Stack


def make_stack(stack: Stack, width: int, config: Config, rng: np.random.Generator) -> S5Stack:
    """A stack of the given width, in the discretisation and form of the whole network."""
    return S5Stack(
        stack.depth,
        width,
        stack.states,
        rng,
        discretisation=config.discretisation,
        skip=config.skip,
    )
