"""A training step of every method on a workload of the drone's size, beside that of Phy-SSM.

Batch 64, 800 + 200 rows, 9 channels, 7 controls, in the sizes of the named configuration `drone`.
Each runs in a process of its own, so that its peak memory, compiling included, is its own. How many
steps a solver takes depends on the drift: here it is that of untrained networks.
"""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.measure import Measure, median_seconds

BATCH, CONTEXT, HORIZON = 64, 800, 200
YARDSTICK = "phy_ssm"
IN_SIZES_OF = {"aphynity": "goku"}  # not in the paper's comparison
TIME_LIMIT, MEMORY_LIMIT_GB = 6.0, 4.0


def measures() -> list[Measure]:
    from physsm.benchmark.configurations import read_configuration

    models = (*read_configuration("drone").models, *IN_SIZES_OF)
    found = {name: _in_process(name) for name in models}
    usual = found[YARDSTICK]["seconds"]
    results = []
    for name, step in found.items():
        seconds, gigabytes = step["seconds"], step["gigabytes"]
        results += [
            Measure(f"{name}: training step", seconds, YARDSTICK, seconds / usual, TIME_LIMIT),
            Measure(
                f"{name}: peak memory ({gigabytes:.2f} GB)",
                seconds,
                f"{MEMORY_LIMIT_GB:g} GB",
                gigabytes / MEMORY_LIMIT_GB,
                1.0,
            ),
        ]
    return results


def _in_process(model: str) -> dict[str, float]:
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.methods", model],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(result.stdout.splitlines()[-1])


def _training_step(model: str) -> dict[str, float]:
    import resource

    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import jax.random as jr
    import numpy as np

    from physsm import Panel, System
    from physsm._programs import release_memory
    from physsm._registry import find
    from physsm._values import Series
    from physsm.benchmark.configurations import configuration
    from physsm.data.window import Sizes, gather, whole_series
    from physsm.nn.parameter_groups import is_parameter

    rng, rows = np.random.default_rng(0), CONTEXT + HORIZON
    system = System.load("quadrotor")
    series = [
        Series(
            str(i),
            np.cumsum(rng.uniform(0.5e-3, 1.7e-3, rows)),
            rng.standard_normal((rows, 9)),
            rng.standard_normal((rows, 7)),
        )
        for i in range(BATCH)
    ]
    panel = Panel.from_series(series, [f"x{i}" for i in range(9)], system.controls)
    kind = find("models", model, "MODEL")
    sizes = configuration("drone", IN_SIZES_OF.get(model, model))
    known = kind.Config.model_fields
    forecaster = kind.create(system, {name: sizes[name] for name in sizes if name in known})
    network = forecaster.network(panel, panel, Sizes(CONTEXT, HORIZON, 1), 0)
    chosen = whole_series(panel, HORIZON)
    batch = gather(network.scales.table.scale(panel), chosen, CONTEXT, HORIZON, 1.0)
    params, static = eqx.partition(network, is_parameter)
    batch = jax.tree.map(jnp.asarray, batch)

    @jax.jit
    def step(params):
        def loss(params):
            whole = eqx.combine(params, static)
            return forecaster.objective(whole, batch, CONTEXT, jr.key(0), jnp.asarray(1.0))

        return jax.value_and_grad(loss)(params)

    compiled = step.lower(params).compile()
    release_memory()  # as training does
    value, _ = compiled(params)
    assert np.isfinite(float(value))
    seconds = median_seconds(lambda: jax.block_until_ready(compiled(params)), runs=3)
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return {"seconds": seconds, "gigabytes": gigabytes}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_training_step(sys.argv[1])) + "\n")
