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
import numpy as np
from jaxtyping import Array, Float
from numpy.random import Generator

from physsm.models._latent import terms
from physsm.models._latent.plan import Plan
from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.stacks import make_stack
from physsm.models.phy_ssm.values import Drive, Features
from physsm.nn.discretise import Discrete
from physsm.nn.layers import on_last_axis
from physsm.nn.linear_algebra import solve
from physsm.nn.mlp import MLP, Dense
from physsm.nn.parameter_groups import PHYSICAL
from physsm.nn.s5 import S5Stack
from physsm.physics.bounds import limits
from physsm.physics.system import System


class PhysicsUnit(eqx.Module):
    """The transition of a partly known system.

    Each unknown is `constants` plus, where it is `per series`, a term from the encoder, and, where
    it varies, a term from the S5 stack (or perceptron) over states and controls; the sum is mapped
    into its bounds and multiplied by its natural size.
    """

    constants: Float[Array, " unknowns"] = eqx.field(metadata=PHYSICAL)
    control_map: MLP | Dense | None
    network: S5Stack | MLP | None
    head: MLP | None
    system: System = eqx.field(static=True)
    plan: Plan = eqx.field(static=True)
    config: Config = eqx.field(static=True)

    def __init__(self, system: System, plan: Plan, config: Config, rng: Generator):
        self.system, self.plan, self.config = system, plan, config
        self.constants = terms.starts(system, plan)
        d, m, varying = len(system.names), len(plan.controls), len(self.varying)
        width = config.unit.width or d
        self.control_map = self.network = self.head = None
        if not varying:
            return
        if config.unit.width is not None:
            self.control_map = Dense(d + m, width, rng)
        elif m:
            hidden = config.encoder.width or width
            self.control_map = MLP(m, hidden, 1, width, rng, activation="softplus")
        if config.unknown_network == "s5":
            self.network = make_stack(config.unit, width, config, rng)
        else:
            self.network = MLP(width, width, config.unit.depth, width, rng)
        self.head = MLP(
            width,
            config.unknown_hidden,
            1,
            varying,
            rng,
            activation="softplus",
            last_gain=0.01,
        )

    @property
    def dtype(self) -> jnp.dtype:
        """The precision of the parameters."""
        return self.constants.dtype

    @property
    def size(self) -> int:
        """The number of states that are inferred, without lifted ones."""
        return len(self.system.states)

    @property
    def varying(self) -> tuple[int, ...]:
        """Which unknowns are functions of state, control and history."""
        return terms.of_kind(self.system, "varying")

    @property
    def per_series(self) -> tuple[int, ...]:
        """Which unknowns have one value for each series."""
        return terms.of_kind(self.system, "per series")

    def limits(self) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """The bounds of the states, scaled; infinite where there are none."""
        lower, upper = limits(self.system.state_bounds)
        scale = self._like(self.plan.state_scale)
        return self._like(lower) / scale, self._like(upper) / scale

    def start(self) -> Float[Array, "depth states"]:
        """The states of the S5 stack before the first row."""
        if isinstance(self.network, S5Stack):
            return self.network.start()
        return jnp.zeros((0, 0), self.constants.dtype)

    def extend(self, z: Float[Array, " n"]) -> Float[Array, " d"]:
        """The extended state of a state."""
        lifted = self.system.lift(z * self._like(self.plan.state_scale))
        return jnp.concatenate([z, lifted[self.size :] / self._lifted_scale()])

    def centred(self, z_ext: Float[Array, "*steps d"]) -> Float[Array, "*steps d"]:
        """Extended states without the means of the measured ones."""
        lifted = (0.0,) * (z_ext.shape[-1] - self.size)
        return z_ext - on_last_axis((*self.plan.state_offset, *lifted), z_ext)

    def features(
        self,
        z_ext: Float[Array, "steps *batch d"],
        u: Float[Array, "steps *batch controls"],
        gaps: Float[Array, " steps *batch"],
    ) -> Features:
        """The raw terms of the varying unknowns at all rows from the first on."""
        batch = gaps.shape[1:]
        carry = jnp.zeros((*batch, 0, 0), z_ext.dtype)
        if self.network is None:
            nothing = jnp.zeros((*gaps.shape, 0), z_ext.dtype)
            return Features(nothing, nothing[-1], carry)
        hidden = self._inputs(z_ext, u)
        if isinstance(self.network, S5Stack):
            hidden, states = self.network(hidden, gaps, self.network.start(*batch))
            carry = jnp.moveaxis(states, 0, -2)
        else:
            hidden = self.network(hidden)
        return Features(self._head()(hidden), self._head()(hidden[-1]), carry)

    def discrete(self, gaps: Float[Array, "*shape"]) -> Discrete | None:
        """What `feature_step` needs to know of gaps; for many of them at once, before a loop."""
        return self.network.discrete(gaps) if isinstance(self.network, S5Stack) else None

    def feature_step(
        self,
        z_ext: Float[Array, " d"],
        u: Float[Array, " controls"],
        discrete: Discrete | None,
        carry: Float[Array, "depth states"],
    ) -> tuple[Float[Array, " varying"], Float[Array, "depth states"]]:
        """The same for one row."""
        varying = jnp.zeros(0, z_ext.dtype)
        if self.network is not None:
            hidden = self._inputs(z_ext, u)
            if isinstance(self.network, S5Stack):
                assert discrete is not None
                hidden, carry = self.network.step(hidden, discrete, carry)
            else:
                hidden = self.network(hidden)
            varying = self._head()(hidden)
        return varying, carry

    def theta(
        self, features: Float[Array, " varying"], series_terms: Float[Array, " per_series"]
    ) -> Float[Array, " unknowns"]:
        """The unknowns in physical units, within their bounds."""
        raw = self.constants
        if len(self.varying) == len(raw):
            raw = raw + features
        elif self.varying:
            raw = raw.at[np.array(self.varying)].add(features)
        if self.per_series:
            raw = raw.at[np.array(self.per_series)].add(series_terms)
        return terms.in_physical_units(self.system, self.plan, raw)

    def advance(
        self,
        z_ext: Float[Array, " d"],
        theta: Float[Array, " unknowns"],
        drive: Drive,
    ) -> Float[Array, " d"]:
        """The extended state after a gap, by the bilinear rule.

        (I - gap/2 A) z' = (I + gap/2 A) z + gap B u, solved for one right-hand side. A gap may be
        negative: the rule is its own inverse.
        """
        u = drive.u if self.config.control_hold == "start" else (drive.u + drive.u_next) / 2
        part = drive.gap / self.config.substeps
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
        z_ext, u = self.centred(z_ext), self.plan.scale_controls(u)
        if isinstance(self.control_map, Dense):
            return self.control_map(jnp.concatenate([z_ext, u], axis=-1))
        return z_ext if self.control_map is None else z_ext + self.control_map(u)

    def _head(self) -> MLP:
        assert self.head is not None
        return self.head

    def _lifted_scale(self) -> Array:
        return self._like(self.plan.extended_scale[self.size :])

    def _like(self, numbers: Sequence[float]) -> Array:
        return jnp.asarray(np.array(numbers, float), self.constants.dtype)
