"""Forecasts that run away: which series, when, in which state, and by which unknown terms."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm._values import Panel, Query
from physsm.models._latent.plan import Plan
from physsm.models.phy_ssm.network import FAR
from physsm.physics.system import System


def instabilities(
    system: System | None,
    plan: Plan,
    history: Panel,
    query: Query,
    z_ext: Float[np.ndarray, "series steps d"],
) -> tuple[str, ...]:
    """A sentence for each series whose state, scaled, was stopped on its way to infinity."""
    size = len(system.states) if system is not None else z_ext.shape[-1]
    centre = np.array(plan.state_offset) if plan.state_offset else 0.0
    is_far = ~(np.abs(z_ext[..., :size] - centre) < 0.999 * FAR)
    found = []
    for s in range(len(history)):
        out = is_far[s, : query.lengths[s]]
        if out.any():
            k = int(out.any(-1).argmax())
            where = _state(system, int(out[k].argmax()))
            found.append(
                f"the forecast of series {history.ids[s]} leaves the stable region at time "
                f"{query.times[s, k]:g} by {where}"
            )
    return tuple(found)


def _state(system: System | None, state: int) -> str:
    """A state and the unknowns in its equation, which may drive it away."""
    if system is None:
        return "the latent"
    name = system.states[state]
    terms = [u.name for u in system.unknowns if any(p.row == name for p in u.places)]
    return f"{name} (unknown terms in its equation: {', '.join(terms)})" if terms else name
