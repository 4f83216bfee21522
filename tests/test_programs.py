"""Kept programs: traced once, the same with and without a cache, and never somebody else's."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physsm import _programs
from physsm._programs import Program, serialisable


class Pair(NamedTuple):
    first: jax.Array
    second: jax.Array


serialisable(Pair)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder of its own, and a process that has compiled nothing yet."""
    before = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    monkeypatch.setattr(_programs, "_compiled", {})
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "cache"))
    yield tmp_path / "cache"
    jax.config.update("jax_compilation_cache_dir", before)


def wave(x, scale):
    return Pair(jnp.sin(x) * scale["a"], jnp.cumsum(x * scale["b"]))


ARGUMENTS = (np.linspace(0, 3, 7), {"a": np.asarray(2.0), "b": np.asarray(0.5)})


def new_process(monkeypatch):
    """Forget what was compiled, and make tracing impossible."""
    monkeypatch.setattr(_programs, "_compiled", {})

    def no_tracing(*_):
        raise AssertionError("traced again")

    monkeypatch.setattr(_programs.export, "export", no_tracing)


def kept_files(cache):
    return list(cache.glob("physsm-*.program"))


def test_is_the_function(cache):
    found = Program(wave, "wave")(*ARGUMENTS)
    assert isinstance(found, Pair)
    np.testing.assert_allclose(found.first, 2 * np.sin(ARGUMENTS[0]), rtol=1e-12)
    np.testing.assert_allclose(found.second, np.cumsum(ARGUMENTS[0] / 2), rtol=1e-12)


def test_a_later_process_does_not_trace_and_has_the_same_bits(cache, monkeypatch):
    first = Program(wave, "wave")(*ARGUMENTS)
    new_process(monkeypatch)
    again = Program(wave, "wave")(*ARGUMENTS)
    assert isinstance(again, Pair)
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one, other)


def test_with_and_without_a_cache_the_bits_are_the_same(cache, monkeypatch):
    first = Program(wave, "wave")(*ARGUMENTS)
    jax.config.update("jax_compilation_cache_dir", None)
    monkeypatch.setattr(_programs, "_compiled", {})
    again = Program(wave, "wave")(*ARGUMENTS)
    for one, other in zip(first, again, strict=True):
        assert np.array_equal(one, other)


def test_each_identity_and_shape_has_its_own_program(cache):
    double, triple = Program(lambda x: 2 * x, "double"), Program(lambda x: 3 * x, "triple")
    for size in (1, 4):
        x = np.ones(size)
        assert double(x).tolist() == [2.0] * size
        assert triple(x).tolist() == [3.0] * size
    assert double(np.ones(2, np.int32)).dtype == np.int32
    assert len(kept_files(cache)) == 5


def test_without_an_identity_nothing_is_shared_or_kept(cache):
    double, triple = Program(lambda x: 2 * x, None), Program(lambda x: 3 * x, None)
    assert double(np.ones(1)).tolist() == [2.0]
    assert triple(np.ones(1)).tolist() == [3.0]
    assert kept_files(cache) == []


def test_calls_of_foreign_code_are_not_kept(cache, monkeypatch):
    # What such a call needs is made ready by tracing; without that it would crash the process.
    A = np.array([[2.0, 1.0], [1.0, 3.0]])
    found = Program(jnp.linalg.cholesky, "cholesky")(A)
    np.testing.assert_allclose(found, np.linalg.cholesky(A), rtol=1e-12)
    assert kept_files(cache) == []


@pytest.mark.parametrize("damage", ["empty", "nonsense", "half", "bit", "longer"])
def test_a_damaged_file_is_made_anew(cache, monkeypatch, damage):
    expected = Program(wave, "wave")(*ARGUMENTS)
    (file,) = kept_files(cache)
    whole = file.read_bytes()
    middle = len(whole) // 2
    flipped = bytes([whole[middle] ^ 4])
    file.write_bytes(
        {
            "empty": b"",
            "nonsense": b"nonsense",
            "half": whole[:middle],
            "bit": whole[:middle] + flipped + whole[middle + 1 :],
            "longer": whole + b"more",
        }[damage]
    )
    monkeypatch.setattr(_programs, "_compiled", {})
    found = Program(wave, "wave")(*ARGUMENTS)
    assert np.array_equal(found.first, expected.first)
    assert _programs._read(file) is not None  # equal up to the line that first called it


def test_a_cache_that_cannot_be_written_does_no_harm(cache, monkeypatch):
    cache.write_text("a file where the folder should be")
    found = Program(wave, "wave")(*ARGUMENTS)
    np.testing.assert_allclose(found.first, 2 * np.sin(ARGUMENTS[0]), rtol=1e-12)


def test_settings_of_jax_count_within_a_process_too(cache):
    draw = Program(lambda: jax.random.normal(jax.random.key(0), (3,)), "draw")
    usual = np.asarray(draw())
    before = jax.config.jax_default_prng_impl  # type: ignore[attr-defined]
    jax.config.update("jax_default_prng_impl", "rbg")
    try:
        expected = np.asarray(jax.random.normal(jax.random.key(0), (3,)))
        np.testing.assert_allclose(draw(), expected, rtol=1e-12)
    finally:
        jax.config.update("jax_default_prng_impl", before)
    assert np.array_equal(draw(), usual)


@pytest.mark.parametrize("change", ["source", "version", "precision"])
def test_what_a_program_depends_on_is_in_its_name(cache, monkeypatch, change):
    Program(wave, "wave")(*ARGUMENTS)
    if change == "source":
        monkeypatch.setattr(_programs, "_source", lambda: "edited")
    elif change == "version":
        monkeypatch.setattr(_programs, "version", lambda name: "99")
    else:
        jax.config.update("jax_default_matmul_precision", "highest")
    try:
        monkeypatch.setattr(_programs, "_compiled", {})
        Program(wave, "wave")(*ARGUMENTS)
    finally:
        jax.config.update("jax_default_matmul_precision", None)
    assert len(kept_files(cache)) == 2


def test_prepare_compiles_without_running(cache, monkeypatch):
    program = Program(wave, "wave")
    program.prepare(*ARGUMENTS)
    monkeypatch.setattr(program, "_compile", None)
    program(*ARGUMENTS)


def test_a_level_of_optimisation_in_xla_flags_holds_for_quick_programs_too(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
    assert _programs._quick_options() == {"xla_cpu_use_fusion_emitters": False}
    monkeypatch.delenv("XLA_FLAGS")
    assert _programs._quick_options()["xla_backend_optimization_level"] == 1
