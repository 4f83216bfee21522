"""The loop on a problem with a known answer; interruptions, faults and full disks."""

import errno
import inspect
import os
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from physsm._errors import RunError, TrainingError
from physsm.nn.parameter_groups import BYPASS, PHYSICAL, UNDECAYED
from physsm.training.checkpoint import (
    named_arrays,
    read_arrays,
    read_json,
    restore_arrays,
    write_arrays,
    write_atomically,
    write_json,
)
from physsm.training.loop import Progress, Task, TrainingSettings, train, train_again
from physsm.training.optimiser import OptimiserSettings, make_optimiser, start_state

TRUE = np.array([1.5, -0.7])


def least_squares_task(spoil_at: int | None = None) -> Task:
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((64, 2))
    targets = inputs @ TRUE

    def loss(params, batch, key, progress):
        x, y, spoil = batch
        noise = 1e-6 * jax.random.normal(key, ())
        return jnp.mean((x @ params["w"] - y) ** 2) + noise + spoil

    def batches(epoch, generator):
        order = generator.permutation(64)
        for i, part in enumerate(np.split(order, 4)):
            step = 4 * epoch + i
            spoil = np.nan if step == spoil_at else 0.0
            yield inputs[part], targets[part], np.asarray(spoil)

    def validate(params):
        return float(np.mean((inputs @ np.asarray(params["w"]) - targets) ** 2))

    # All tasks have the same loss, whose program is compiled once for each number of steps.
    identity = inspect.getsource(least_squares_task)
    return Task({"w": jnp.zeros(2)}, loss, batches, 4, validate, identity)


def settings(**changes) -> TrainingSettings:
    optimiser = changes.pop("optimiser", {"learning_rate": 0.1})
    return TrainingSettings(
        **{"epochs": 40, "validations": 10, **changes}, optimiser=OptimiserSettings(**optimiser)
    )


def test_reaches_the_known_answer():
    result = train(least_squares_task(), settings(), seed=0)
    np.testing.assert_allclose(result.params["w"], TRUE, atol=1e-3)
    assert [row["step"] for row in result.curve] == list(range(16, 161, 16))
    assert result.progress.compile_seconds > 0


def test_same_seed_same_bits_other_seed_other_bits():
    a, b, c = (train(least_squares_task(), settings(), seed=s).params["w"] for s in (3, 3, 4))
    np.testing.assert_array_equal(a, b)
    assert not np.array_equal(a, c)


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("stop_at", [1, 17, 63, 159])
def test_continues_with_the_same_bits(tmp_path, stop_at):
    whole = train(least_squares_task(), settings(), seed=1)

    def stop(progress: Progress):
        if progress.step == stop_at:
            raise StoppedError

    with pytest.raises(StoppedError):
        train(least_squares_task(), settings(), seed=1, folder=tmp_path, report=stop)
    continued = train(least_squares_task(), settings(), seed=1, folder=tmp_path, resume=True)
    np.testing.assert_array_equal(continued.params["w"], whole.params["w"])
    assert continued.curve == whole.curve


def test_a_step_that_is_not_finite_is_skipped_and_counted():
    whole = train(least_squares_task(spoil_at=10), settings(), seed=0)
    assert whole.progress.skipped == 1
    np.testing.assert_allclose(whole.params["w"], TRUE, atol=1e-3)


def test_a_training_without_a_single_step_is_an_error():
    """Else an untrained model would look like a trained one."""
    task = least_squares_task()
    spoiled = replace(task, loss=lambda *arguments: task.loss(*arguments) * jnp.nan, identity=None)
    with pytest.raises(RunError, match="no training step could be taken"):
        train(spoiled, settings(epochs=2), seed=0)
    kept = train(replace(spoiled, start_counts=True), settings(epochs=2), seed=0)
    assert kept.progress.skipped == kept.progress.step


def test_ten_steps_in_a_row_without_a_finite_loss_end_the_training(tmp_path):
    task = least_squares_task()
    seen = []

    def batches(epoch, generator):
        for i, (x, y, spoil) in enumerate(task.batches(epoch, generator)):
            step = 4 * epoch + i
            yield x, y, spoil + (np.nan if step == 3 or step >= 21 else 0.0)

    def explain(params, batch):
        seen.append(float(batch[2]))
        return f"The first weight is {float(params['w'][0]):.1f}."

    broken = replace(task, batches=batches, explain=explain)
    with pytest.raises(TrainingError) as caught:
        train(broken, settings(), seed=0, folder=tmp_path)
    message = str(caught.value)
    assert "ended at step 31 of 160: from step 22 on, 10 steps in a row" in message
    assert "The first weight is 1." in message
    assert "learning rate" in message
    assert np.isnan(seen).tolist() == [True]
    # The last checkpoint stays, and a continued run meets the same end.
    position = read_json(tmp_path / "position.json")["position"]
    assert (position["step"], position["skipped"], position["skipped_in_a_row"]) == (16, 1, 0)
    with pytest.raises(TrainingError, match="from step 22 on"):
        train(broken, settings(), seed=0, folder=tmp_path, resume=True)


def test_never_finite_is_an_error():
    task = least_squares_task()
    hopeless = Task(task.params, task.loss, task.batches, 4, lambda params: float("nan"))
    with pytest.raises(RunError, match="never reached a finite validation loss"):
        train(hopeless, settings(epochs=2), seed=0)


def test_the_best_parameters_win_over_the_last():
    task = least_squares_task()
    seen = []

    def validate(params):
        seen.append(np.asarray(params["w"]).copy())
        return [3.0, 1.0, 2.0][len(seen) - 1]

    judged = Task(task.params, task.loss, task.batches, 4, validate)
    result = train(judged, settings(epochs=3, validations=3), seed=0)
    np.testing.assert_array_equal(result.params["w"], seen[1])
    assert result.progress.best_step == 8


def test_stops_early():
    task = least_squares_task()
    judged = Task(task.params, task.loss, task.batches, 4, lambda params: 1.0)
    result = train(judged, settings(epochs=50, validations=50, early_stop=3), seed=0)
    assert len(result.curve) == 4


def test_a_plateau_lowers_the_rate():
    task = least_squares_task()
    judged = Task(task.params, task.loss, task.batches, 4, lambda params: 1.0)
    steady = {"learning_rate": 0.01, "schedule": "constant"}
    falling = {"learning_rate": 0.01, "schedule": "plateau", "patience": 2}
    moved = []
    for optimiser in (steady, falling):
        path = []
        watched = Task(
            judged.params,
            judged.loss,
            judged.batches,
            4,
            lambda params, path=path: path.append(np.asarray(params["w"])) or 1.0,
        )
        train(watched, settings(epochs=12, validations=12, optimiser=optimiser), seed=0)
        moved.append(np.abs(path[-1] - path[-2]).max())
    assert moved[1] < 0.1 * moved[0]


class Parameters(eqx.Module):
    W: jax.Array
    mass: jax.Array = eqx.field(metadata=PHYSICAL)
    lag: jax.Array = eqx.field(metadata=BYPASS)
    bias: jax.Array = eqx.field(metadata=UNDECAYED)


def moved(slope: float, **optimiser) -> Parameters:
    """How far five steps down a constant slope move parameters that start at one."""
    start = Parameters(*jnp.ones((4, 2)))

    def loss(params, batch, key, progress):
        return slope * jnp.sum(params.W + params.mass + params.lag + params.bias)

    task = Task(
        params=start,
        loss=loss,
        batches=lambda epoch, generator: iter([jnp.zeros(1)]),
        batches_per_epoch=1,
        validate=lambda params: float(params.W[0]),
    )
    steady = {"learning_rate": 0.01, "schedule": "constant", "clip_norm": None, **optimiser}
    result = train(task, settings(epochs=5, validations=5, optimiser=steady), seed=0)
    assert result.progress.best_step == 5
    return jax.tree.map(lambda end, begin: float((begin - end)[0]), result.params, start)


@pytest.mark.parametrize("schedule", ["constant", "one_cycle", "plateau"])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("clip_norm", [None, 1.0])
def test_the_optimiser_starts_as_optax_would_start_it(schedule, weight_decay, clip_norm):
    own = OptimiserSettings(schedule=schedule, weight_decay=weight_decay, clip_norm=clip_norm)
    optimiser = make_optimiser(own, steps=10)
    params: Any = Parameters(jnp.ones((3, 2), jnp.float32), *jnp.ones((3, 2)))
    found, wanted = start_state(optimiser, params), optimiser.init(params)
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert (one.aval, one.weak_type) == (other.aval, other.weak_type)
        np.testing.assert_array_equal(one, other)


def test_weight_decay_spares_declared_groups():
    way = moved(0.0, weight_decay=0.5)
    assert way.W > 0.02
    assert way.mass == way.lag == way.bias == 0


def test_groups_have_their_own_step_sizes():
    way = moved(1.0, constants_speed=4.0, bypass_speed=0.5)
    np.testing.assert_allclose([way.mass, way.lag, way.bias], way.W * np.array([4, 0.5, 1]))


def test_a_full_disk_leaves_the_earlier_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"before")

    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left"):
        write_atomically(path, b"after")
    assert path.read_bytes() == b"before"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_training_on_a_full_disk_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    real, count = os.fsync, []

    def full_later(handle):
        count.append(1)
        if len(count) > 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(handle)

    monkeypatch.setattr(os, "fsync", full_later)
    with pytest.raises(RunError, match="No space left"):
        train(least_squares_task(), settings(), seed=1, folder=tmp_path)
    monkeypatch.setattr(os, "fsync", real)
    continued = train(least_squares_task(), settings(), seed=1, folder=tmp_path, resume=True)
    whole = train(least_squares_task(), settings(), seed=1)
    np.testing.assert_array_equal(continued.params["w"], whole.params["w"])


def test_a_file_in_the_way_of_the_folder(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(RunError, match="cannot be made"):
        train(least_squares_task(), settings(), seed=0, folder=tmp_path / "taken" / "run")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"arrays": 3}', b'{"arrays": "../x", "position": {}}']
)
def test_a_damaged_checkpoint_is_one_clear_sentence(tmp_path, content):
    (tmp_path / "position.json").write_bytes(content)
    with pytest.raises(RunError):
        train(least_squares_task(), settings(), seed=0, folder=tmp_path, resume=True)


def test_arrays_go_back_to_their_places(tmp_path):
    tree = {"a": jnp.arange(3.0), "b": [jnp.ones((2, 2), jnp.int32)]}
    path = tmp_path / "x.safetensors"
    write_arrays(path, named_arrays(tree))
    empty = jax.tree.map(jnp.zeros_like, tree)
    restored = restore_arrays(empty, read_arrays(path), path)
    for a, b in zip(jax.tree.leaves(restored), jax.tree.leaves(tree), strict=True):
        np.testing.assert_array_equal(a, b)
    for wrong in (
        {"a": jnp.zeros(4), "b": tree["b"]},
        {"a": tree["a"]},
        {**tree, "c": jnp.ones(1)},
    ):
        with pytest.raises(RunError, match="does not hold this model"):
            restore_arrays(wrong, read_arrays(path), path)


def test_json_that_readers_take(tmp_path):
    write_json(tmp_path / "x.json", {"a": [1, None]})
    assert read_json(tmp_path / "x.json") == {"a": [1, None]}
    write_json(tmp_path / "x.json", {"a": [float("nan"), np.float32("inf")], "b": np.ones(2)})
    assert read_json(tmp_path / "x.json") == {"a": [None, None], "b": [1.0, 1.0]}


@pytest.mark.parametrize(
    ("wanted", "batches", "per_epoch", "epochs"),
    [
        ({"steps": 500, "validations": 20}, 5, 5, 100),
        ({"steps": 500, "validations": 20}, 3000, 25, 20),
        ({"steps": 3, "validations": 20}, 3000, 1, 3),
        ({"epochs": 2}, 3000, 3000, 2),
    ],
)
def test_a_large_table_does_not_train_for_longer_than_asked(wanted, batches, per_epoch, epochs):
    asked = TrainingSettings(**wanted)
    assert asked.batches_per_epoch(batches) == per_epoch
    assert asked.number_of_epochs(per_epoch) == epochs


def test_a_good_start_is_kept_where_training_finds_nothing_better():
    task = replace(least_squares_task(), params={"w": jnp.asarray(TRUE)}, start_counts=True)
    result = train(task, settings(optimiser={"learning_rate": 10.0}), seed=0)
    np.testing.assert_array_equal(result.params["w"], TRUE)
    assert result.progress.best_step == 0
    assert result.curve[0]["step"] == 0


def test_training_again_takes_the_steps_of_the_best_parameters():
    """On the same batches it ends with the same parameters, to the bit."""
    task, own = least_squares_task(), settings(epochs=12, validations=12)
    first = train(task, own, seed=3)
    assert 0 < first.progress.best_step <= first.progress.steps
    seen: list[Progress] = []
    again = train_again(
        task, own, first.progress, seed=3, report=lambda now: seen.append(replace(now))
    )
    np.testing.assert_array_equal(again["w"], first.params["w"])
    assert seen[-1].is_over
    assert all(now.is_again for now in seen)
    assert seen[-1].step == first.progress.best_step
