"""Parameter groups that modules declare for their fields."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from physsm.nn.parameter_groups import BYPASS, PHYSICAL, UNDECAYED, groups_of, is_parameter


class Affine(eqx.Module):
    W: Array
    b: Array = eqx.field(metadata=UNDECAYED)
    size: int = eqx.field(static=True)

    def __init__(self, size: int):
        self.W, self.b, self.size = jnp.ones((size, size)), jnp.zeros(size), size


class Oscillator(eqx.Module):
    constants: Array = eqx.field(metadata=PHYSICAL)
    network: Affine


class Damped(Oscillator):
    damping: Array = eqx.field(metadata=PHYSICAL)
    gain: Array


class Wrapped(eqx.Module):
    inner: Affine | None = eqx.field(metadata=BYPASS)
    both: tuple[Affine, Affine]


class Pair(NamedTuple):
    b: Array
    module: Affine


def _flat(tree: object) -> dict[str, str]:
    leaves, _ = jax.tree_util.tree_flatten_with_path(groups_of(tree))
    return {jax.tree_util.keystr(path): group for path, group in leaves}


def test_an_undeclared_field_is_decayed():
    assert _flat(Affine(2)) == {".W": "decayed", ".b": "undecayed"}


def test_declarations_are_inherited():
    damped = Damped(jnp.ones(1), Affine(2), jnp.ones(1), jnp.ones(1))
    assert _flat(damped) == {
        ".constants": "physical",
        ".network.W": "decayed",
        ".network.b": "undecayed",
        ".damping": "physical",
        ".gain": "decayed",
    }


def test_a_declaration_holds_for_everything_below_the_field():
    wrapped = Wrapped(Affine(2), (Affine(1), Affine(1)))
    assert _flat(wrapped) == {
        ".inner.W": "bypass",
        ".inner.b": "bypass",
        ".both[0].W": "decayed",
        ".both[0].b": "undecayed",
        ".both[1].W": "decayed",
        ".both[1].b": "undecayed",
    }


def test_containers_are_walked():
    tree = {"layers": [Affine(1), (jnp.ones(1), None)], "pair": Pair(jnp.ones(1), Affine(1))}
    assert _flat(tree) == {
        "['layers'][0].W": "decayed",
        "['layers'][0].b": "undecayed",
        "['layers'][1][0]": "decayed",
        "['pair'].b": "decayed",  # a named tuple declares nothing, whatever its fields are called
        "['pair'].module.W": "decayed",
        "['pair'].module.b": "undecayed",
    }


@pytest.mark.parametrize("tree", [Affine(2), Wrapped(None, (Affine(1), Affine(2))), None, (), []])
def test_the_structure_is_that_of_the_tree(tree: object):
    assert jax.tree.structure(groups_of(tree)) == jax.tree.structure(tree)


def test_a_partitioned_tree_keeps_its_groups():
    class Counted(eqx.Module):
        count: Array = eqx.field(metadata=UNDECAYED)
        affine: Affine

    params, static = eqx.partition(Counted(jnp.arange(2), Affine(1)), eqx.is_inexact_array)
    assert _flat(params) == {".affine.W": "decayed", ".affine.b": "undecayed"}
    assert _flat(static) == {".count": "undecayed"}


def test_groups_are_seen_under_jit_and_vmap_of_stacked_layers():
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), Affine(2), Affine(2))
    seen: list[dict[str, str]] = []

    @jax.jit
    def outer(layers: Affine) -> Array:
        seen.append(_flat(layers))

        def inner(layer: Affine) -> Array:
            seen.append(_flat(layer))
            return layer.W @ layer.b

        return jax.vmap(inner)(layers)

    outer(stacked)
    assert seen == [{".W": "decayed", ".b": "undecayed"}] * 2


def test_a_declaration_gives_no_default_value():
    assert all(field.default is dataclasses.MISSING for field in dataclasses.fields(Damped))
    assert not hasattr(Oscillator, "constants")
    with pytest.raises(TypeError, match="missing"):
        Oscillator(network=Affine(1))  # type: ignore[call-arg]


def test_a_custom_init_that_forgets_a_declared_field_is_refused():
    class Forgetful(eqx.Module):
        constants: Array = eqx.field(metadata=PHYSICAL)

        def __init__(self):
            pass

    with pytest.raises((TypeError, ValueError), match="constants"):
        Forgetful()


def test_only_jax_arrays_of_real_or_complex_numbers_are_parameters():
    leaves = [jnp.ones(2), jnp.ones(1, complex), jnp.arange(2), np.ones(2), np.float64(1.0), 1.0]
    assert [is_parameter(leaf) for leaf in leaves] == [True, True, False, False, False, False]
