"""The network: encoder, unit and decoder, on rows of one series or, after time, of a batch of them.

Inside the observed part every step starts from the inferred state (one step ahead). After it, the
unit goes on from its own predictions (rollout).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from physsm.models._latent.decoder import Decoder
from physsm.models._latent.plan import Plan
from physsm.models._latent.rows import Observations
from physsm.models.phy_ssm.config import Config
from physsm.models.phy_ssm.direct import DirectPath
from physsm.models.phy_ssm.encoder import Encoder
from physsm.models.phy_ssm.filter import Belief, Filter
from physsm.models.phy_ssm.fit_direct import Start
from physsm.models.phy_ssm.free_unit import FreeUnit
from physsm.models.phy_ssm.path_inputs import PathInputs
from physsm.models.phy_ssm.unit import PhysicsUnit
from physsm.models.phy_ssm.values import Beliefs, Boundary, Drive, Inferred, Observed, Rollout
from physsm.nn.discretise import Discrete
from physsm.nn.gaussian import Gaussian, gaussian, sample
from physsm.nn.layers import parameter
from physsm.nn.linear_algebra import cholesky
from physsm.nn.mlp import Dense
from physsm.nn.recompute import lean_scan
from physsm.physics.system import System

NOTHING_KNOWN = 1e6  # scaled: the std of what the encoder does not say
FAR = 100.0  # scaled: how far from its mean a state may go in a rollout


class Network(eqx.Module):
    """Phy-SSM. `system` None: the same without physics, a plain S5 latent model."""

    encoder: Encoder
    to_state: Dense | None
    unit: PhysicsUnit | FreeUnit
    prior_head: Dense | None
    decoder: Decoder
    direct_path: DirectPath | None
    filter: Filter | None
    plan: Plan = eqx.field(static=True)
    config: Config = eqx.field(static=True)

    def __init__(self, system: System | None, plan: Plan, config: Config, seed: int):
        rng = np.random.default_rng(seed)
        for_encoder, for_state, for_unit, for_prior, for_decoder = rng.spawn(5)
        self.plan, self.config = plan, config
        if system is None:
            self.unit = FreeUnit(plan, config, for_unit)
        else:
            self.unit = PhysicsUnit(system, plan, config, for_unit)
        has_map = system is not None and config.latent is not None
        is_state = system is not None and not has_map
        filters = is_state and config.assimilate and any(state >= 0 for state in plan.grounded)
        latent = config.latent if has_map and config.latent else self.unit.size
        per_series = len(self.unit.per_series)
        self.encoder = Encoder(
            plan,
            config,
            latent,
            per_series,
            is_state=is_state,
            is_filtered=filters,
            rng=for_encoder,
        )
        self.filter = Filter(plan, per_series) if filters else None
        self.to_state = Dense(latent, self.unit.size, for_state) if has_map else None
        extended = self.unit.size if system is None else len(system.names)
        self.prior_head = None if filters else Dense(extended, 2 * latent, for_prior)
        self.decoder = Decoder(plan, config.decoder_perceptron, extended, for_decoder)
        self.direct_path = DirectPath(PathInputs.of(system, plan)) if plan.offsets else None

    def with_direct_path(self, start: Start) -> Network:
        """The same network with these weights of its direct path."""
        weights = [start.run, start.next] + ([] if start.short is None else [start.short])

        def where(network: Network) -> list[Any]:
            path = network.direct_path
            assert path is not None
            return [path.direct_run, path.direct_next, path.direct_short][: len(weights)]

        return eqx.tree_at(where, self, [parameter(array) for array in weights])

    @property
    def dtype(self) -> jnp.dtype:
        """The precision of the parameters."""
        return self.unit.dtype

    @property
    def starts_well(self) -> bool:
        """A direct path is good before any training."""
        return self.direct_path is not None

    @property
    def identity(self) -> str:
        """All but its parameters: networks with the same are built the same."""
        text = self.unit.system.text if isinstance(self.unit, PhysicsUnit) else None
        return repr((text, self.plan, self.config))

    # The observed part.

    def observe(self, rows: Observations, key: PRNGKeyArray | None) -> Observed:
        """Infer the states of all rows and predict each next row; means if there is no key."""
        observed = self._filtered(rows) if self.filter is not None else self._inferred(rows, key)
        if self.direct_path is None:
            return observed
        lags = self.direct_path.last_rows(rows)
        return observed._replace(boundary=observed.boundary._replace(lags=lags))

    def _inferred(self, rows: Observations, key: PRNGKeyArray | None) -> Observed:
        """The observed part by the encoder alone."""
        inferred, encoder_states = self.encoder(rows)
        axes = rows.gaps.ndim
        z_ext = _mapped(self.unit.extend, axes)(self._states(inferred.posterior, key))
        features = self.unit.features(z_ext, rows.controls, rows.gaps)
        theta = _mapped(self.unit.theta, axes)(features.rows, inferred.series_terms)
        drive = Drive(rows.controls[:-1], rows.controls[1:], rows.gaps[1:])
        predicted = _mapped(self.unit.advance, axes)(z_ext[:-1], theta[:-1], drive)
        posterior, terms = jax.tree.map(lambda leaf: leaf[-1], inferred)
        boundary = Boundary(
            encoder_states,
            features.carry,
            posterior,
            z_ext[-1],
            features.last,
            terms,
            rows.controls[-1],
            *self._unfiltered(*rows.gaps.shape[1:]),
            self._no_rows(*rows.gaps.shape[1:]),
        )
        return Observed(
            inferred.posterior,
            z_ext,
            theta,
            jnp.zeros_like(theta),
            predicted,
            self.prior(predicted),
            boundary,
        )

    def start(self) -> Boundary:
        """A stream before its first row."""
        size = self.unit.size
        z = jnp.zeros(size, self.dtype)
        covariance, is_started = self._unfiltered()
        if self.filter is not None:
            z = jnp.asarray(np.array(self.plan.state_offset), self.dtype)
            covariance = self.filter.start_covariance()
        z_ext = self.unit.extend(z)
        u = jnp.zeros(len(self.plan.controls), self.dtype)
        discrete = self.unit.discrete(jnp.zeros((), self.dtype))
        features, _ = self.unit.feature_step(z_ext, u, discrete, self.unit.start())
        nothing = jnp.zeros(self.encoder.latent, self.dtype)
        return Boundary(
            self.encoder.start(self.dtype),
            self.unit.start(),
            gaussian(nothing, nothing),
            z_ext,
            features,
            jnp.zeros(len(self.unit.per_series), self.dtype),
            u,
            covariance,
            jnp.zeros_like(is_started),
            self._no_rows(),
        )

    def update(self, before: Boundary, row: Observations) -> Boundary:
        """The stream after one more row: what `observe` would give for all rows so far."""
        inferred, encoder_states = self.encoder.step(row, before.encoder)
        discrete = self.unit.discrete(row.gaps)
        lags = before.lags
        if self.direct_path is not None:
            lags = self.direct_path.after(lags, row, before.is_started)
        if self.filter is not None:
            after, *_ = self._filter_row(self.filter, before, row, inferred, discrete)
            return after._replace(encoder=encoder_states, lags=lags)
        z_ext = self.unit.extend(self._states(inferred.posterior, None))
        features, unit_states = self.unit.feature_step(z_ext, row.controls, discrete, before.unit)
        return Boundary(
            encoder_states,
            unit_states,
            inferred.posterior,
            z_ext,
            features,
            inferred.series_terms,
            row.controls,
            *self._unfiltered(),
            lags,
        )

    def _unfiltered(self, *batch: int) -> tuple[Array, Array]:
        """Covariance and start of a boundary without a filter."""
        return jnp.zeros((*batch, 0, 0), self.dtype), jnp.ones(batch, self.dtype)

    def _no_rows(self, *batch: int) -> Array:
        """The rows that a direct path goes on from, before the first."""
        lags = jnp.zeros((0, 0), self.dtype)
        lags = lags if self.direct_path is None else self.direct_path.start()
        return jnp.broadcast_to(lags, (*batch, *lags.shape))

    def beliefs(self, rows: Observations, own: Bool[Array, " steps *batch"]) -> Beliefs:
        """What the filter holds of each row. Of rows that are not its series' `own` the encoder
        says nothing: to ask for a time must not count as evidence.
        """
        assert self.filter is not None
        learned = self.filter

        def seen(row: Observations, after: Boundary, prior: Belief, slope: Array) -> Beliefs:
            mean = jnp.concatenate([after.z_ext[: self.unit.size], after.series_terms])
            noise = learned.noise(row.gaps)
            return Beliefs(mean, after.covariance, prior.mean, slope, noise)

        return self._run_filter(rows, seen, own)[1]

    def _filtered(self, rows: Observations) -> Observed:
        """The observed part by a filter that goes from row to row."""
        size = self.unit.size

        def seen(row: Observations, after: Boundary, prior: Belief, slope: Array):
            theta, theta_std = self._theta_with_std(after)
            predicted = Gaussian(prior.mean[:size], prior.std(size))
            return after.posterior, after.z_ext, theta, theta_std, predicted

        end, (posterior, z_ext, theta, theta_std, prior) = self._run_filter(rows, seen)
        prior = jax.tree.map(lambda leaf: leaf[1:], prior)
        predicted = _mapped(self.unit.extend, rows.gaps.ndim)(prior.mean)
        return Observed(posterior, z_ext, theta, theta_std, predicted, prior, end)

    def _run_filter(
        self,
        rows: Observations,
        seen: Callable[[Observations, Boundary, Belief, Array], Any],
        own: Bool[Array, " steps *batch"] | None = None,
    ) -> tuple[Boundary, Any]:
        """The boundary after all rows, and what `seen` makes of each: of the row, the boundary
        after it, what was believed before it, and the slope of the transition to it.
        """
        assert self.filter is not None
        learned, axes, batch = self.filter, rows.gaps.ndim, rows.gaps.shape[1:]
        inferred, encoder_states = self.encoder(rows)
        if own is not None:
            std = jnp.where(own[..., None], inferred.posterior.std, NOTHING_KNOWN)
            inferred = inferred._replace(posterior=inferred.posterior._replace(std=std))

        def one_row(
            before: Boundary, row: Observations, inferred: Inferred, discrete: Discrete | None
        ):
            after, prior, slope = self._filter_row(learned, before, row, inferred, discrete)
            return after, seen(row, after, prior, slope)

        start = jax.tree.map(
            lambda leaf: jnp.broadcast_to(leaf, (*batch, *leaf.shape)), self.start()
        )
        each = _mapped(one_row, axes - 1)
        inputs = (rows, inferred, self.unit.discrete(rows.gaps))
        end, kept = lean_scan(lambda before, now: each(before, *now), start, inputs)
        return end._replace(encoder=encoder_states), kept

    def _filter_row(
        self,
        learned: Filter,
        before: Boundary,
        row: Observations,
        inferred: Inferred,
        discrete: Discrete | None,
    ) -> tuple[Boundary, Belief, Array]:
        """One row of the filter, what was believed before it, and the slope of the transition. A
        row with a gap of zero changes nothing.
        """
        size = self.unit.size
        drive = Drive(before.control, row.controls, row.gaps)

        def transition(state: Array) -> Array:
            theta = self.unit.theta(before.features, state[size:])
            after = self.unit.advance(self.unit.extend(state[:size]), theta, drive)
            return jnp.concatenate([after[:size], state[size:]])

        state = jnp.concatenate([before.z_ext[:size], before.series_terms])
        prior, slope = learned.predicted(
            Belief(state, before.covariance), transition, row.gaps, before.is_started
        )
        belief = learned.corrected(prior, row, inferred.posterior)
        z_ext = self.within_reach(self.unit.extend(belief.mean[:size]))
        features, unit_states = self.unit.feature_step(z_ext, row.controls, discrete, before.unit)
        after = Boundary(
            before.encoder,
            unit_states,
            Gaussian(z_ext[:size], belief.std(size)),
            z_ext,
            features,
            belief.mean[size:],
            row.controls,
            belief.covariance,
            jnp.ones((), self.dtype),
            before.lags,
        )
        is_row = row.gaps > 0
        after = jax.tree.map(lambda new, old: jnp.where(is_row, new, old), after, before)
        return after, prior, slope

    def _theta_with_std(self, boundary: Boundary) -> tuple[Array, Array]:
        """The unknowns, and their std from that of the series terms, to first order."""
        terms, size = boundary.series_terms, self.unit.size
        theta = self.unit.theta(boundary.features, terms)
        slope = jax.jacfwd(self.unit.theta, argnums=1)(boundary.features, terms)
        variance = (slope @ boundary.covariance[size:, size:] * slope).sum(-1)
        return theta, jnp.sqrt(jnp.maximum(variance, 0))

    # The future.

    def draw(self, boundary: Boundary, key: PRNGKeyArray) -> Boundary:
        """The boundary with a draw of its state (and series terms) instead of the mean."""
        if self.filter is None:
            z_ext = self.unit.extend(self._states(boundary.posterior, key))
            return boundary._replace(z_ext=z_ext)
        size = self.unit.size
        mean = jnp.concatenate([boundary.z_ext[:size], boundary.series_terms])
        root = cholesky(boundary.covariance)
        drawn = mean + root @ jr.normal(key, mean.shape, mean.dtype)
        return boundary._replace(z_ext=self.unit.extend(drawn[:size]), series_terms=drawn[size:])

    def rollout(
        self,
        boundary: Boundary,
        controls: Float[Array, "steps controls"],
        gaps: Float[Array, " steps"],
        key: PRNGKeyArray | None = None,
    ) -> Rollout:
        """Go on from the boundary; `gaps[k]` is the time before future row k.

        With a key, each step adds a draw of the prior's spread: what the model leaves open.
        """

        def body(carry: tuple[Array, Array, Array, Array], inputs: Any):
            z_ext, features, unit_states, u = carry
            u_next, gap, discrete, noise = inputs
            theta = self.unit.theta(features, boundary.series_terms)
            z_next = self.unit.advance(z_ext, theta, Drive(u, u_next, gap))
            if key is not None:
                z_next = self._disturbed(z_next, noise, gap)
            z_next = self.within_reach(z_next)
            features, unit_states = self.unit.feature_step(z_next, u_next, discrete, unit_states)
            return (z_next, features, unit_states, u_next), (z_next, theta)

        shape = (gaps.shape[0], self.encoder.latent if key is not None else 0)
        noise = jnp.zeros(shape, self.dtype)
        noise = noise if key is None else jr.normal(key, shape, self.dtype)
        initial = (boundary.z_ext, boundary.features, boundary.unit, boundary.control)
        inputs = (controls, gaps, self.unit.discrete(gaps), noise)
        _, (z_ext, theta) = lean_scan(body, initial, inputs)
        return Rollout(z_ext, theta)

    def within_reach(self, z_ext: Float[Array, " d"]) -> Float[Array, " d"]:
        """The state, kept within its bounds and stopped where nothing is meant any more.

        A model that is still wrong may run away in a rollout; without a stop its gradients would
        be infinite, and it could not learn from its start.
        """
        size = self.unit.size
        lower, upper = self.unit.limits()
        centre = (z_ext - self.unit.centred(z_ext))[:size]
        z = jnp.clip(
            z_ext[:size], jnp.maximum(centre - FAR, lower), jnp.minimum(centre + FAR, upper)
        )
        is_inside = jnp.all(z == z_ext[:size])
        return jnp.where(is_inside, z_ext, self.unit.extend(z))

    def prior(self, predicted: Float[Array, "*steps d"]) -> Gaussian:
        """The distribution of the latent that a prediction implies.

        Where the latent is the state itself, the prediction is its mean, and only the spread is
        learned; else both are linear in the prediction.
        """
        assert self.prior_head is not None
        mean, raw = jnp.split(self.prior_head(self.unit.centred(predicted)), 2, axis=-1)
        if self.to_state is None:
            mean = predicted[..., : self.unit.size]
        return gaussian(mean, raw)

    def decode(self, z_ext: Float[Array, "*steps d"]) -> Float[Array, "*steps channels"]:
        """Scaled channels: measured states as they are, the others by the decoder network (beside
        a direct path, what the state adds to it).
        """
        return self.decoder(self.unit.centred(z_ext))

    def next_rows(
        self, rows: Observations, observed: Observed
    ) -> Float[Array, "before *batch channels"]:
        """Scaled channels of each row but the first, as predicted from the rows before it."""
        decoded = self.decode(observed.predicted)
        return decoded if self.direct_path is None else self.direct_path.predict(rows, decoded)

    def future_rows(
        self,
        boundary: Boundary,
        z_ext: Float[Array, "steps d"],
        controls: Float[Array, "steps controls"],
        gaps: Float[Array, " steps"],
    ) -> Float[Array, "steps channels"]:
        """Scaled channels along a rollout from the boundary."""
        decoded = self.decode(z_ext)
        if self.direct_path is None:
            return decoded
        return self.direct_path.run(boundary.lags, decoded, controls, gaps)

    def _states(self, posterior: Gaussian, key: PRNGKeyArray | None) -> Array:
        latent = posterior.mean if key is None else sample(posterior, key)
        return latent if self.to_state is None else self.to_state(latent)

    def _disturbed(self, z_ext: Array, noise: Array, gap: Array) -> Array:
        if self.filter is not None:
            std = jnp.sqrt(self.filter.noise(gap)[: self.unit.size])
        else:
            std = self.prior(z_ext).std
        shift = std * noise * jnp.where(gap > 0, 1, 0).astype(noise.dtype)
        shift = shift if self.to_state is None else self.to_state.W @ shift
        return self.unit.extend(z_ext[: self.unit.size] + shift)


def _mapped(function: Callable[..., Any], axes: int) -> Callable[..., Any]:
    """A function of one row over so many leading axes."""
    for _ in range(axes):
        function = jax.vmap(function)
    return function
