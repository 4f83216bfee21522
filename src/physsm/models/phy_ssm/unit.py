"""The Phy-SSM unit: equations with learned unknowns, taken one implicit step at a time.

A unit has three parts. `features` reads the states and controls so far and carries the states of
its S5 stack. `theta` makes the vector of unknowns of its outputs. `advance` takes the extended
state over one gap with that theta. All take one sample; states are scaled and gaps in the plan's
unit of time.
"""

from __future__ import annotations

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.plan import Plan
from physsm.nn.mlp import MLP, Dense
from physsm.nn.s5 import S5Stack
from physsm.nn.solve import solve
from physsm.physics.bounds import Bounds
from physsm.physics.constrain import from_bounded, to_bounded
from physsm.physics.system import System

_START = 0.05  # where an unknown with one bound starts, in its natural size
_FREE_LIMIT = 3.0  # of unknowns that cannot make the implicit step singular by themselves


class PhysicsUnit(eqx.Module):
    """The transition of a partly known system.

    Each unknown is `constants` plus, where it is `per series`, a term from the encoder, and, where
    it varies, a term from the S5 stack (or perceptron) over states and controls; the sum is mapped
    into its bounds and multiplied by its natural size.
    """

    constants: Float[Array, " unknowns"]
    control_map: MLP | Dense | None
    network: S5Stack | MLP | None
    head: MLP | None
    system: System = eqx.field(static=True)
    plan: Plan = eqx.field(static=True)
    config: Config = eqx.field(static=True)

    def __init__(self, system: System, plan: Plan, config: Config, key: PRNGKeyArray):
        key_control, key_network, key_head = jr.split(key, 3)
        self.system, self.plan, self.config = system, plan, config
        start = np.array([_start(bounds) for bounds in _scaled_bounds(system, plan)])
        self.constants = jnp.asarray(start, jnp.result_type(float))
        d, m, varying = len(system.names), len(plan.controls), len(self.varying)
        width = config.unit.width or d
        self.control_map = self.network = self.head = None
        if not varying:
            return
        if config.unit.width is not None:
            self.control_map = Dense(d + m, width, key_control)
        elif m:
            hidden = config.encoder.width or width
            self.control_map = MLP(m, hidden, 1, width, key_control, activation="softplus")
        if config.unknown_network == "s5":
            self.network = S5Stack(
                config.unit.depth,
                width,
                config.unit.states,
                key_network,
                discretisation=config.discretisation,
                skip=config.skip,
            )
        else:
            self.network = MLP(width, width, config.unit.depth, width, key_network)
        self.head = MLP(
            width,
            config.unknown_hidden,
            1,
            varying,
            key_head,
            activation="softplus",
            last_gain=0.01,
        )

    @property
    def size(self) -> int:
        """The number of states that are inferred, without lifted ones."""
        return len(self.system.states)

    @property
    def varying(self) -> tuple[int, ...]:
        """Which unknowns are functions of state, control and history."""
        return _of_kind(self.system, "varying")

    @property
    def per_series(self) -> tuple[int, ...]:
        """Which unknowns have one value for each series."""
        return _of_kind(self.system, "per series")

    def limits(self) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """The bounds of the states, scaled; infinite where there are none."""
        bounds, scale = self.system.state_bounds, self.plan.state_scale
        lower = [_or(b.lower, -np.inf) / s for b, s in zip(bounds, scale, strict=True)]
        upper = [_or(b.upper, np.inf) / s for b, s in zip(bounds, scale, strict=True)]
        return self._like(lower), self._like(upper)

    def start(self) -> Float[Array, "depth states"]:
        """The states of the S5 stack before the first row."""
        if isinstance(self.network, S5Stack):
            return self.network.start()
        return jnp.zeros((0, 0), self.constants.dtype)

    def extend(self, z: Float[Array, " n"]) -> Float[Array, " d"]:
        """The extended state of a state."""
        lifted = self.system.lift(z * self._like(self.plan.state_scale))
        return jnp.concatenate([z, lifted[self.size :] / self._lifted_scale()])

    def features(
        self,
        z_ext: Float[Array, "steps d"],
        u: Float[Array, "steps controls"],
        gaps: Float[Array, " steps"],
        carry: Float[Array, "depth states"],
    ) -> tuple[Float[Array, "steps varying"], Float[Array, "depth states"]]:
        """The raw terms of the varying unknowns at each row, and the S5 states after it."""
        varying = jnp.zeros((z_ext.shape[0], 0), z_ext.dtype)
        if self.network is not None:
            hidden = self._inputs(z_ext, u)
            if isinstance(self.network, S5Stack):
                hidden, carry = self.network(hidden, gaps, carry)
            else:
                hidden = self.network(hidden)
            varying = self._head()(hidden)
        return varying, carry

    def feature_step(
        self,
        z_ext: Float[Array, " d"],
        u: Float[Array, " controls"],
        gap: Float[Array, ""],
        carry: Float[Array, "depth states"],
    ) -> tuple[Float[Array, " varying"], Float[Array, "depth states"]]:
        """The same for one row."""
        varying = jnp.zeros(0, z_ext.dtype)
        if self.network is not None:
            hidden = self._inputs(z_ext, u)
            if isinstance(self.network, S5Stack):
                hidden, carry = self.network.step(hidden, gap, carry)
            else:
                hidden = self.network(hidden)
            varying = self._head()(hidden)
        return varying, carry

    def theta(
        self, features: Float[Array, " varying"], series_terms: Float[Array, " per_series"]
    ) -> Float[Array, " unknowns"]:
        """The unknowns in physical units, within their bounds."""
        raw = self.constants
        if self.varying:
            raw = raw.at[np.array(self.varying)].add(features)
        if self.per_series:
            raw = raw.at[np.array(self.per_series)].add(series_terms)
        bounds = _scaled_bounds(self.system, self.plan)
        limit = self._like(_free_limits(self.system, self.plan))
        is_free = np.array([not b for b in bounds], bool)
        theta = jnp.where(is_free, limit * jnp.tanh(raw / limit), to_bounded(raw, bounds))
        return self._within(theta * self._like(self.plan.unknown_size))

    def advance(
        self,
        z_ext: Float[Array, " d"],
        theta: Float[Array, " unknowns"],
        u: Float[Array, " controls"],
        u_next: Float[Array, " controls"],
        gap: Float[Array, ""],
    ) -> Float[Array, " d"]:
        """The extended state after a gap, by the bilinear rule.

        (I - gap/2 A) z' = (I + gap/2 A) z + gap B u, solved for one right-hand side. A gap may be
        negative: the rule is its own inverse.
        """
        u = u if self.config.control_hold == "start" else (u + u_next) / 2
        part = gap / self.config.substeps
        for _ in range(self.config.substeps):
            z_ext = self._step(z_ext, theta, u, part)
        return z_ext

    def _step(self, z_ext: Array, theta: Array, u: Array, gap: Array) -> Array:
        after = self._bilinear(z_ext, z_ext, theta, u, gap)
        if self.config.correct:
            after = self._bilinear(z_ext, (z_ext + after) / 2, theta, u, gap)
        return self.extend(after[: self.size]) if self.config.relift else after

    def _bilinear(self, z_ext: Array, at: Array, theta: Array, u: Array, gap: Array) -> Array:
        """One step with the coefficients of the extended state `at`."""
        scale = self._like(self.plan.extended_scale)
        used = [self.plan.controls.index(name) for name in self.system.controls]
        u = u[np.array(used, int)]
        A, B = self.system.assemble(theta, at * scale, u)
        A = A * (self.plan.time_scale * scale[None, :] / scale[:, None])
        force = self.plan.time_scale * (B @ u) / scale
        right = z_ext + gap * (A @ z_ext / 2 + force)
        return solve(jnp.eye(len(scale), dtype=A.dtype) - gap / 2 * A, right)

    def _inputs(self, z_ext: Array, u: Array) -> Array:
        """The input of the S5 stack: extended state and controls, centred, on the last axis."""
        n = self.size
        offset = self._like((*self.plan.state_offset, *(0.0,) * (z_ext.shape[-1] - n)))
        shape = (1,) * (z_ext.ndim - 1) + (-1,)
        z_ext = z_ext - offset.reshape(shape)
        shift, scale = self._like(self.plan.control_shift), self._like(self.plan.control_scale)
        u = (u - shift.reshape(shape)) / scale.reshape(shape)
        if isinstance(self.control_map, Dense):
            return self.control_map(jnp.concatenate([z_ext, u], axis=-1))
        return z_ext if self.control_map is None else z_ext + self.control_map(u)

    def _head(self) -> MLP:
        assert self.head is not None
        return self.head

    def _within(self, theta: Array) -> Array:
        """Scaling may round a value just over its bound."""
        lower = [_or(u.bounds.lower, -np.inf) for u in self.system.unknowns]
        upper = [_or(u.bounds.upper, np.inf) for u in self.system.unknowns]
        return jnp.clip(theta, self._like(lower), self._like(upper))

    def _lifted_scale(self) -> Array:
        return self._like(self.plan.extended_scale[self.size :])

    def _like(self, numbers: Sequence[float]) -> Array:
        return jnp.asarray(np.array(numbers, float), self.constants.dtype)


def _of_kind(system: System, kind: str) -> tuple[int, ...]:
    return tuple(i for i, unknown in enumerate(system.unknowns) if unknown.kind == kind)


def _or(bound: float | None, otherwise: float) -> float:
    return otherwise if bound is None else bound


def _scaled_bounds(system: System, plan: Plan) -> list[Bounds]:
    """The bounds of the unknowns in units of their natural sizes."""
    return [
        Bounds(
            None if u.bounds.lower is None else u.bounds.lower / size,
            None if u.bounds.upper is None else u.bounds.upper / size,
        )
        for u, size in zip(system.unknowns, plan.unknown_size, strict=True)
    ]


def _start(bounds: Bounds) -> float:
    """The raw value of a constant before training: nearly no effect, or an interval's middle."""
    if bounds.lower is not None and bounds.upper is not None:
        return 0.0
    near = _START + bounds.lower if bounds.lower is not None else 0.0
    near = bounds.upper - _START if bounds.upper is not None else near
    return float(from_bounded(jnp.asarray([near], jnp.result_type(float)), [bounds])[0])


def _free_limits(system: System, plan: Plan) -> list[float]:
    """How large an unknown without bounds may become, in its natural size.

    On the diagonal of A a rate above 2/gap would make the implicit step singular.
    """
    diagonal = 1 / max(plan.largest_gap, 1.0)
    return [
        diagonal if any(p.matrix == "A" and p.row == p.column for p in u.places) else _FREE_LIMIT
        for u in system.unknowns
    ]


class FreeUnit(eqx.Module):
    """A transition without physics: the next latent from an S5 stack over latents and controls.

    `features` are the outputs of the stack, and `advance` adds to the latent what a perceptron
    makes of them, the next control and the gap.
    """

    inputs: Dense
    network: S5Stack
    outputs: MLP
    plan: Plan = eqx.field(static=True)
    latent: int = eqx.field(static=True)

    def __init__(self, plan: Plan, config: Config, key: PRNGKeyArray):
        key_in, key_network, key_out = jr.split(key, 3)
        self.plan = plan
        self.latent = config.latent or len(plan.channels)
        width, m = config.unit.width or self.latent, len(plan.controls)
        self.inputs = Dense(self.latent + m, width, key_in)
        self.network = S5Stack(
            config.unit.depth,
            width,
            config.unit.states,
            key_network,
            discretisation=config.discretisation,
            skip=config.skip,
        )
        self.outputs = MLP(
            width + m + 1,
            config.unknown_hidden,
            1,
            self.latent,
            key_out,
            activation="gelu",
            last_gain=0.1,
        )

    @property
    def size(self) -> int:
        """The size of the latent."""
        return self.latent

    @property
    def per_series(self) -> tuple[int, ...]:
        """No unknowns."""
        return ()

    def limits(self) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """A latent has no bounds."""
        infinite = jnp.full(self.latent, np.inf, self.inputs.W.dtype)
        return -infinite, infinite

    def start(self) -> Float[Array, "depth states"]:
        """The states of the S5 stack before the first row."""
        return self.network.start()

    def extend(self, z: Float[Array, " n"]) -> Float[Array, " n"]:
        """Nothing is lifted."""
        return z

    def features(
        self,
        z_ext: Float[Array, "steps n"],
        u: Float[Array, "steps controls"],
        gaps: Float[Array, " steps"],
        carry: Float[Array, "depth states"],
    ) -> tuple[Float[Array, "steps width"], Float[Array, "depth states"]]:
        """Outputs of the stack at each row, and its states after them."""
        return self.network(self._joined(z_ext, u), gaps, carry)

    def feature_step(
        self,
        z_ext: Float[Array, " n"],
        u: Float[Array, " controls"],
        gap: Float[Array, ""],
        carry: Float[Array, "depth states"],
    ) -> tuple[Float[Array, " width"], Float[Array, "depth states"]]:
        """The same for one row."""
        return self.network.step(self._joined(z_ext, u), gap, carry)

    def theta(
        self, features: Float[Array, " width"], series_terms: Float[Array, " none"]
    ) -> Float[Array, " width"]:
        """The outputs of the stack as they are."""
        return features

    def advance(
        self,
        z_ext: Float[Array, " n"],
        theta: Float[Array, " width"],
        u: Float[Array, " controls"],
        u_next: Float[Array, " controls"],
        gap: Float[Array, ""],
    ) -> Float[Array, " n"]:
        """The latent after a gap."""
        inputs = jnp.concatenate([theta, self._scaled(u_next), gap[None]])
        return z_ext + self.outputs(inputs)

    def _joined(self, z_ext: Array, u: Array) -> Array:
        return self.inputs(jnp.concatenate([z_ext, self._scaled(u)], axis=-1))

    def _scaled(self, u: Array) -> Array:
        shape = (1,) * (u.ndim - 1) + (-1,)
        shift = jnp.asarray(np.array(self.plan.control_shift, float), u.dtype).reshape(shape)
        scale = jnp.asarray(np.array(self.plan.control_scale, float), u.dtype).reshape(shape)
        return (u - shift) / scale


Unit = PhysicsUnit | FreeUnit
