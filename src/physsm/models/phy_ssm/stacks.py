"""S5 stacks as the settings describe them."""

from __future__ import annotations

from jaxtyping import PRNGKeyArray

from physsm.models.phy_ssm.config import Config, Stack
from physsm.nn.s5 import S5Stack


def make_stack(stack: Stack, width: int, config: Config, key: PRNGKeyArray) -> S5Stack:
    """A stack of the given width, in the discretisation and form of the whole network."""
    return S5Stack(
        stack.depth,
        width,
        stack.states,
        key,
        discretisation=config.discretisation,
        skip=config.skip,
    )
