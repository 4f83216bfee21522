"""Phy-SSM on a workload of the drone's size: training step, memory, length, forecast, stream.

Batch 64, 800 + 200 rows, 9 channels, 7 controls, the quadrotor system, the paper's settings. The
yardstick of the training step is its roof: the time that its matrix products alone would take, at
the speed that one tall product of the same shapes reaches in this very run.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.measure import Measure, median_seconds

BATCH, CONTEXT, HORIZON = 64, 801, 200
STEP_LIMIT, DOUBLING_LIMIT, MEMORY_LIMIT_GB = 2.5, 2.1, 3.0
FORECAST_LIMIT, UPDATE_LIMIT, RESTART_LIMIT = 0.010, 0.0005, 3.0


def measures() -> list[Measure]:
    step = _in_process("step")
    half = _in_process("half")
    results = [
        Measure(
            "training step, drone size", step["seconds"], "its matmuls", step["ratio"], STEP_LIMIT
        ),
        Measure(
            "the same, half the rows → all",
            step["seconds"],
            "half the rows",
            step["seconds"] / half["seconds"],
            DOUBLING_LIMIT,
        ),
        Measure(
            f"peak memory of a step ({step['gigabytes']:.2f} GB)",
            step["seconds"],
            "3 GB",
            step["gigabytes"] / MEMORY_LIMIT_GB,
            1.0,
        ),
    ]
    use = _in_process("use")
    for name, limit in (("forecast", FORECAST_LIMIT), ("update", UPDATE_LIMIT)):
        seconds = use[name]
        label = {"forecast": "forecast of one drone window", "update": "one streaming update"}
        results.append(Measure(label[name], seconds, f"{limit * 1e3:g} ms", seconds / limit, 1.0))
    with tempfile.TemporaryDirectory() as folder:
        _in_process("table", folder)
        _in_process("restart", folder)
        again = _in_process("restart", folder)["seconds"]
    results.append(
        Measure("second start to the first step", again, "3 s", again / RESTART_LIMIT, 1.0)
    )
    return results


def _in_process(job: str, *arguments: str) -> dict[str, float]:
    """Each job in a process of its own: its peak memory is then its own."""
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks.model", job, *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(result.stdout.splitlines()[-1])


def _network(rows: int):
    import numpy as np

    from physsm import Panel, System
    from physsm._values import Series
    from physsm.data.window import gather, whole_series
    from physsm.models._network.scales import table_scales
    from physsm.models._network.state_scales import state_scales
    from physsm.models.phy_ssm.build import build_network
    from physsm.models.phy_ssm.bypass_inputs import PhySSMScales
    from physsm.models.phy_ssm.config import Config, preset_settings

    rng = np.random.default_rng(0)
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
    config = Config(**preset_settings("paper", {}))
    table = table_scales(panel, False, False)
    scales = PhySSMScales(table=table, states=state_scales(system, table, panel, False))
    horizon = rows // 5
    batch = gather(table.scale(panel), whole_series(panel, horizon), rows - horizon, horizon, 1.0)
    return build_network(system, scales, config, 0), batch, rows - horizon, panel


def _training_step(rows: int) -> dict[str, float]:
    import resource

    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import jax.random as jr

    from physsm._programs import release_memory
    from physsm.models.phy_ssm.objective import objective
    from physsm.nn.parameter_groups import is_parameter

    network, batch, context, _ = _network(rows)
    params, static = eqx.partition(network, is_parameter)
    batch = jax.tree.map(jnp.asarray, batch)

    @jax.jit
    def step(params):
        return jax.value_and_grad(
            lambda p: objective(eqx.combine(p, static), batch, context, jr.key(0), jnp.asarray(1.0))
        )(params)

    compiled = step.lower(params).compile()
    release_memory()  # as training does
    seconds = median_seconds(lambda: jax.block_until_ready(compiled(params)), runs=5)
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    roof = _matmul_flops(network, rows, context) / _matmul_speed()
    return {"seconds": seconds, "ratio": seconds / roof, "gigabytes": gigabytes}


def _matmul_flops(network: Any, rows: int, context: int) -> float:
    """Multiplications and additions of all matrix products, forwards and backwards."""

    def dense(weights) -> float:
        return sum(2.0 * w.size for w in weights)

    encoder, unknowns = network.encoder, network.unit.network
    perceptron = dense([layer.W for layer in encoder.perceptron.layers])
    decoder = dense([layer.W for layer in network.decoder.network.perceptron.layers])
    blocks = encoder.stack.blocks
    stacks = dense([blocks.s5.B, blocks.s5.C, blocks.W_in, blocks.W_out])
    blocks = unknowns.stack.blocks
    perceptrons = (*unknowns.head.layers, *unknowns.inputs.perceptron.layers)
    inside = dense(
        [blocks.s5.B, blocks.s5.C, blocks.W_in, blocks.W_out, *(layer.W for layer in perceptrons)]
    )
    per_context = (
        perceptron + stacks + dense([encoder.posterior_head.W, network.inference.prior_head.W])
    )
    total = context * per_context + rows * (decoder + inside)
    return 3.0 * BATCH * total


def _matmul_speed() -> float:
    """Operations per second of a tall product as in the perceptrons."""
    import jax
    import jax.numpy as jnp

    tall, square = jnp.ones((BATCH * CONTEXT, 200)), jnp.ones((200, 200))
    product = jax.jit(jnp.matmul)
    seconds = median_seconds(lambda: jax.block_until_ready(product(tall, square)))
    return 2.0 * BATCH * CONTEXT * 200 * 200 / seconds


def _fitted():
    from physsm import System
    from physsm.data.window import Sizes
    from physsm.models._files import Interface
    from physsm.models._intervals import uncalibrated
    from physsm.models.phy_ssm.fitted import FittedStateSpace

    network, _, context, panel = _network(CONTEXT + HORIZON)

    class Fitted(FittedStateSpace):
        name = "phy_ssm"

    fitted = Fitted(
        system=System.load("quadrotor"),
        network=network,
        interface=Interface.of(panel),
        calibration=uncalibrated(9),
        noise=(1.0,) * 9,
        sizes=Sizes(context, HORIZON, 1),
    )
    return fitted, panel.select([0])


def _use() -> dict[str, float]:
    import jax

    from physsm.data.window import cut_windows, whole_series

    fitted, panel = _fitted()
    history, query, _ = cut_windows(panel, whole_series(panel, HORIZON))
    forecast = median_seconds(lambda: fitted.forecast(history, times=query, coverage=None), runs=15)
    stream, one = fitted.start(), panel[0]
    times = []
    for i in range(300):
        began = time.perf_counter()
        stream = fitted.update(stream, one.times[i], one.values[i], one.controls[i])
        jax.block_until_ready(stream.boundary)
        times.append(time.perf_counter() - began)
    return {"forecast": forecast, "update": sorted(times)[150]}


def _table(folder: str) -> dict[str, float]:
    """A table to fit, and its physics."""
    from physsm.benchmark.demo import PHYSICS
    from physsm.data.files import write_table
    from physsm.data.table import panel_frame
    from physsm.datasets.pendulum import states

    write_table(panel_frame(states(series=(12, 1, 1), rows=120, seed=0).train), f"{folder}/x.csv")
    Path(folder, "x.phys").write_text(PHYSICS)
    return {}


def _restart(folder: str) -> dict[str, float]:
    """From the start of a process to the end of its first training step, on a small fit."""
    began = time.perf_counter()
    import physsm

    physsm.use_compile_cache(f"{folder}/compiled")

    class FirstStep(Exception):  # noqa: N818
        pass

    def stop(progress):
        if progress.step:
            raise FirstStep

    with contextlib.suppress(FirstStep):
        system = physsm.System.read(f"{folder}/x.phys")
        physsm.PhySSM(system).fit(f"{folder}/x.csv", report=stop)
    return {"seconds": time.perf_counter() - began}


if __name__ == "__main__":
    jobs = {
        "step": lambda: _training_step(CONTEXT + HORIZON),
        "half": lambda: _training_step((CONTEXT + HORIZON) // 2),
        "use": _use,
        "table": lambda: _table(sys.argv[2]),
        "restart": lambda: _restart(sys.argv[2]),
    }
    sys.stdout.write(json.dumps(jobs[sys.argv[1]]()) + "\n")
