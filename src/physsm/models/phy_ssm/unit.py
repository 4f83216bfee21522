"""The Phy-SSM unit: equations with learned unknowns, advanced by implicit steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float
from numpy.random import Generator

from physsm.models._network import unknowns
from physsm.models._network.scales import Scales
from physsm.models.phy_ssm.abstract_unit import AbstractUnit
from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.unknown_network import AbstractUnknownNetwork, make_unknown_network
from physsm.models.phy_ssm.values import Drive, Features
from physsm.nn.discretise import Discrete
from physsm.nn.layers import on_last_axis, parameter
from physsm.nn.linear_algebra import solve
from physsm.nn.parameter_groups import PHYSICAL, UNDECAYED
from physsm.physics.bounds import limits
from physsm.physics.system import System

USUAL_SUBSTEPS = 2
_MOST_UNROLLED = 2


class PhysicsUnit(AbstractUnit):
    """The transition of a partly known system.

    Each unknown is `constants` plus, where it is `per series`, an inferred term, and, where it
    varies, an output of the unknown network; the sum is mapped into its bounds and multiplied by
    its natural size.
    """

    constants: Float[Array, " unknowns"] = eqx.field(metadata=PHYSICAL)
    hold: Float[Array, "substeps controls"] = eqx.field(metadata=UNDECAYED)  # not trained
    network: AbstractUnknownNetwork
    system: System = eqx.field(static=True)
    scales: Scales
    config: Config = eqx.field(static=True)

    def __init__(self, system: System, scales: Scales, config: Config, rng: Generator):
        self.system, self.scales, self.config = system, scales, config
        self.constants = unknowns.starts(system, scales)
        self.hold = parameter(hold_weights(system, scales.table.controls, config))
        self.network = make_unknown_network(
            len(system.names), len(scales.table.controls), len(self.varying), config, rng
        )

    @property
    def dtype(self) -> jnp.dtype:
        """The precision of the parameters."""
        return self.constants.dtype

    @property
    def size(self) -> int:
        """The number of written states."""
        return len(self.system.states)

    @property
    def extended_size(self) -> int:
        """The number of written and lifted states."""
        return len(self.system.names)

    @property
    def text(self) -> str:
        """The physics."""
        return self.system.text

    @property
    def varying(self) -> tuple[int, ...]:
        """The unknowns that are functions of state, control and history."""
        return unknowns.of_kind(self.system, "varying")

    @property
    def per_series(self) -> tuple[int, ...]:
        """The unknowns with one value for each series."""
        return unknowns.of_kind(self.system, "per series")

    @property
    def holds_previous(self) -> Bool[np.ndarray, " controls"]:
        """By the physics text or the settings."""
        names = self.scales.table.controls
        holds = [control_hold(self.system, name, self.config) for name in names]
        return np.array([hold in ("auto", "previous") for hold in holds], bool)

    def limits(self) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """The bounds of the states, scaled; infinite where there are none."""
        lower, upper = limits(self.system.state_bounds)
        scale = self._like(self.scales.states.state_scale)
        return self._like(lower) / scale, self._like(upper) / scale

    def extend(self, z: Float[Array, " n"]) -> Float[Array, " d"]:
        """The extended state of a state."""
        states = self.scales.states
        lifted = self.system.lift(z * self._like(states.state_scale))[self.size :]
        return jnp.concatenate([z, lifted / self._like(states.extended_scale[self.size :])])

    def centred(self, z_ext: Float[Array, "*steps d"]) -> Float[Array, "*steps d"]:
        """Extended states without the means of the measured ones."""
        offset = self._like(self.scales.states.state_offset)
        lifted = jnp.zeros(z_ext.shape[-1] - self.size, offset.dtype)
        return z_ext - on_last_axis(jnp.concatenate([offset, lifted]), z_ext)

    def features(self, z_ext: Array, u: Array, gaps: Array) -> Features:
        """The raw terms of the varying unknowns at all time steps from the first on."""
        return self.network(self.centred(z_ext), self.scales.table.scale_controls(u), gaps)

    def discrete(self, gaps: Float[Array, "*shape"]) -> Discrete | None:
        """The discretised S5 stack of the unknown network."""
        return self.network.discrete(gaps)

    def start(self) -> Float[Array, "depth states"]:
        """The states of the unknown network before the first time step."""
        return self.network.start(self.dtype)

    def feature_step(
        self, z_ext: Array, u: Array, discrete: Discrete | None, carry: Array
    ) -> tuple[Float[Array, " varying"], Float[Array, "depth states"]]:
        """`features` for one time step."""
        z_ext, u = self.centred(z_ext), self.scales.table.scale_controls(u)
        return self.network.step(z_ext, u, discrete, carry)

    def theta(self, features: Array, series_terms: Array) -> Float[Array, " unknowns"]:
        """The unknowns in physical units, within their bounds."""
        raw = self.constants
        if len(self.varying) == len(raw):
            raw = raw + features
        elif self.varying:
            raw = raw.at[np.array(self.varying)].add(features)
        if self.per_series:
            raw = raw.at[np.array(self.per_series)].add(series_terms)
        return unknowns.in_physical_units(self.system, self.scales, raw)

    def advance(self, z_ext: Array, theta: Array, drive: Drive) -> Float[Array, " d"]:
        """The extended state after a gap, by the bilinear rule.

        (I - gap/2 A) z' = (I + gap/2 A) z + gap B u, solved for one right-hand side. A gap may be
        negative: the rule is its own inverse.
        """
        hold, change = lax.stop_gradient(self.hold), drive.u_next - drive.u
        part = drive.gap / len(hold)

        def step(z_ext: Array, weight: Array) -> tuple[Array, None]:
            return self._step(z_ext, theta, drive.u + weight * change, part), None

        # A few steps are faster without a loop; many would take long to compile.
        return lax.scan(step, z_ext, hold, unroll=len(hold) <= _MOST_UNROLLED)[0]

    def observe(self, z_ext: Array, u: Array) -> Float[Array, " channels"]:
        """Scaled channels that the physics gives: states, and functions of them with constant
        unknowns; 0 for the others.
        """
        states, table = self.scales.states, self.scales.table
        measured = np.array(states.measured, int)
        channels = jnp.where(measured >= 0, self.centred(z_ext)[measured], 0)
        places = states.expression_channels
        if not len(places):
            return channels
        features = jnp.zeros(len(self.varying), z_ext.dtype)
        theta = self.theta(features, jnp.zeros(len(self.per_series), z_ext.dtype))
        z = z_ext[: self.size] * self._like(states.state_scale)
        values = self.system.observe(theta, z, u[self._controls])
        shift, scale = self._like(table.channel_shift), self._like(table.channel_scale)
        observed = values[np.array(states.expression, int)[places]]
        return channels.at[places].set((observed - shift[places]) / scale[places])

    @property
    def _controls(self) -> np.ndarray:
        """Places of the system's controls among those of the table."""
        names = self.scales.table.controls
        return np.array([names.index(name) for name in self.system.controls], int)

    def _step(self, z_ext: Array, theta: Array, u: Array, gap: Array) -> Array:
        after = self._bilinear(z_ext, z_ext, theta, u, gap)
        if self.config.correct:
            after = self._bilinear(z_ext, (z_ext + after) / 2, theta, u, gap)
        return self.extend(after[: self.size]) if self.config.relift else after

    def _bilinear(self, z_ext: Array, at: Array, theta: Array, u: Array, gap: Array) -> Array:
        """One step with the coefficients of the extended state `at`."""
        table, scale = self.scales.table, self._like(self.scales.states.extended_scale)
        u = u[self._controls]
        A, B = self.system.assemble(theta, at * scale, u)
        time_scale = self._like(table.time_scale)
        A = A * (time_scale * scale[None, :] / scale[:, None])
        force = time_scale * (B @ u) / scale
        right = z_ext + gap * (A @ z_ext / 2 + force)
        return solve(jnp.eye(len(scale), dtype=A.dtype) - gap / 2 * A, right)

    def _like(self, numbers: Any) -> Array:
        return jnp.asarray(numbers, self.constants.dtype)


def hold_weights(
    system: System, controls: Sequence[str], config: Config
) -> Float[np.ndarray, "substeps controls"]:
    """Share of a control's change over a gap that each substep sees, at its middle."""
    substeps = config.substeps or USUAL_SUBSTEPS
    middle = (np.arange(substeps) + 0.5) / substeps
    nothing, half = np.zeros_like(middle), np.full_like(middle, 0.5)
    of_hold = {"previous": nothing, "auto": nothing, "linear": middle, "mean": half}
    holds = [control_hold(system, name, config) for name in controls]
    columns = [of_hold[hold] for hold in holds]
    return np.array(columns).reshape(len(controls), substeps).T


def control_hold(system: System, name: str, config: Config) -> str:
    """The hold of a control: that of the physics text, else that of the settings."""
    return system.holds.get(name, config.control_hold)
