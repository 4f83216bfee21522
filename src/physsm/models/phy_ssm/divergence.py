"""Divergent forecasts: a warning with the series, the time, the state and its unknown terms."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from physsm._values import Panel, Query
from physsm.models._network.scales import StateScales
from physsm.models.phy_ssm.abstract_unit import FAR
from physsm.physics.system import System


def divergences(
    system: System | None,
    states: StateScales,
    history: Panel,
    query: Query,
    z_ext: Float[np.ndarray, "series steps d"],
) -> tuple[str, ...]:
    """A sentence for each series with a scaled state that was clipped at `FAR`."""
    size = len(system.states) if system is not None else z_ext.shape[-1]
    centre = states.state_offset if len(states.state_offset) else 0.0
    is_far = ~(np.abs(z_ext[..., :size] - centre) < 0.999 * FAR)
    warnings = []
    for s in range(len(history)):
        clipped = is_far[s, : query.lengths[s]]
        if clipped.any():
            k = int(clipped.any(-1).argmax())
            state = _state_with_terms(system, int(clipped[k].argmax()))
            warnings.append(
                f"the forecast of series {history.ids[s]} leaves the stable region at time "
                f"{query.times[s, k]:g} by {state}"
            )
    return tuple(warnings)


def _state_with_terms(system: System | None, state: int) -> str:
    """A state and the unknowns in its equation, which may make it diverge."""
    if system is None:
        return "the latent"
    name = system.states[state]
    terms = [u.name for u in system.unknowns if any(p.row == name for p in u.places)]
    return f"{name} (unknown terms in its equation: {', '.join(terms)})" if terms else name
