"""Programs on the host beside ONNX Runtime and JAX: microseconds of process CPU a call.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false \\
        python -m bench.programs [--only block] [--rounds 30] [--json FILE]

All that run a program take turns in one process, on the same inputs; a figure is the least over
the rounds, so it is what the machine can do. JAX computes on threads of its own: the CPU time of
the whole process is counted. Before, each result is held against that of NumPy.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import onnxruntime
from rich.console import Console
from rich.table import Table

import smelt

Call: TypeAlias = Callable[..., Sequence[np.ndarray]]
BATCH_SECONDS = 0.004
"""How long one round calls the same program."""


def norm(x: jax.Array) -> jax.Array:
    """LayerNorm without scale."""
    centered = x - x.mean(-1, keepdims=True)
    return centered / jnp.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5)


def block(heads: int) -> Callable[..., jax.Array]:
    """A transformer block: attention of so many heads, then an MLP with gelu."""

    def run(
        x: jax.Array, wqkv: jax.Array, wo: jax.Array, w1: jax.Array, w2: jax.Array
    ) -> jax.Array:
        batch, length, width = x.shape
        parts = (norm(x) @ wqkv).reshape(batch, length, 3, heads, width // heads)
        q, k, v = (parts[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
        scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(width // heads)
        mixed = (jax.nn.softmax(scores, axis=-1) @ v).transpose(0, 2, 1, 3)
        x = x + mixed.reshape(batch, length, width) @ wo
        return x + jax.nn.gelu(norm(x) @ w1, approximate=False) @ w2

    return run


def mlp(x: jax.Array, w1: jax.Array, b1: jax.Array, w2: jax.Array, b2: jax.Array) -> jax.Array:
    """Two layers."""
    return jax.nn.relu(x @ w1 + b1) @ w2 + b2


def cnn(x: jax.Array, w1: jax.Array, w2: jax.Array, w3: jax.Array) -> jax.Array:
    """Three convolutions, each with relu, and a mean."""
    for weights, stride in ((w1, 1), (w2, 2), (w3, 2)):
        x = jax.lax.conv_general_dilated(x, weights, (stride, stride), "SAME")
        x = jax.nn.relu(x)
    return x.mean((2, 3))


def cheap(x: jax.Array, y: jax.Array) -> jax.Array:
    """Eight cheap elementwise operators."""
    a = x * y + x
    b = jnp.maximum(a, y) - 0.5 * x
    return b * b + a - jnp.minimum(b, 1.0)


def costly(x: jax.Array, y: jax.Array) -> jax.Array:
    """exp and tanh between cheap operators."""
    return jnp.tanh(x * y) + jnp.exp(-x * x) * y


def gradient(x: jax.Array, w1: jax.Array, b1: jax.Array, w2: jax.Array, b2: jax.Array) -> Any:
    """Gradients of a loss of the MLP by all weights."""

    def loss(*weights: jax.Array) -> jax.Array:
        return (mlp(x, *weights) ** 2).mean()

    return jax.grad(loss, (0, 1, 2, 3))(w1, b1, w2, b2)


def many(*inputs: jax.Array) -> Any:
    """The sum of many vectors."""
    return sum(inputs)


def wide(size: int) -> list[tuple[int, ...]]:
    """The shapes of an MLP for inputs of ``size`` rows."""
    return [(size, 256), (256, 512), (512,), (512, 64), (64,)]


def block_shapes(batch: int, length: int, width: int) -> list[tuple[int, ...]]:
    """Input, then weights."""
    weights = [(width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)]
    return [(batch, length, width), *weights]


PROGRAMS: dict[str, tuple[Callable[..., object], list[tuple[int, ...]]]] = {
    "block 1x32x64": (block(4), block_shapes(1, 32, 64)),
    "block 4x128x256": (block(8), block_shapes(4, 128, 256)),
    "mlp 1": (mlp, wide(1)),
    "mlp 64": (mlp, wide(64)),
    "mlp gradient": (gradient, [(16, 32), (32, 64), (64,), (64, 8), (8,)]),
    "cnn": (cnn, [(1, 3, 32, 32), (16, 3, 3, 3), (32, 16, 3, 3), (32, 32, 3, 3)]),
    "cheap 1e4": (cheap, [(10_000,)] * 2),
    "cheap 1e6": (cheap, [(1_000_000,)] * 2),
    "exp tanh 1e4": (costly, [(10_000,)] * 2),
    "exp tanh 1e6": (costly, [(1_000_000,)] * 2),
    "matmul 32": (jnp.matmul, [(32, 32)] * 2),
    "64 of matmul 32": (jnp.matmul, [(64, 32, 32)] * 2),
    "matmul 512": (jnp.matmul, [(512, 512)] * 2),
    "add 4": (jnp.add, [(4,)] * 2),
    "100 inputs": (many, [(4,)] * 100),
}


def contenders(name: str) -> tuple[dict[str, Call], list[np.ndarray]]:
    """What runs a program, by name, and inputs for it; weights are inputs, as in JAX."""
    function, shapes = PROGRAMS[name]
    rng = np.random.default_rng(0)
    scale = [math.sqrt(shape[-2]) if len(shape) > 1 else 1.0 for shape in shapes]
    inputs = [
        (rng.standard_normal(shape) / by).astype(np.float32)
        for shape, by in zip(shapes, scale, strict=True)
    ]
    model = smelt.trace(function, *(f"f32[{','.join(map(str, shape))}]" for shape in shapes))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    data = smelt.to_proto(smelt.optimize(model)).SerializeToString()
    session = onnxruntime.InferenceSession(data, options, ["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    jitted = jax.jit(function)

    def by_jax(*arrays: np.ndarray) -> Sequence[np.ndarray]:
        return jax.tree.leaves(jax.block_until_ready(jitted(*arrays)))

    return {
        "numpy": smelt.compile(model, target="host", engine="numpy"),
        "native": smelt.compile(model, target="host", engine="native"),
        "ort": lambda *arrays: session.run(None, dict(zip(names, arrays, strict=True))),
        "jax": by_jax,
    }, inputs


def check(calls: dict[str, Call], inputs: Sequence[np.ndarray]) -> None:
    """All must agree before any is timed, and the native engine must have compiled."""
    expected = calls["numpy"](*inputs)
    for call in calls.values():
        for result, wanted in zip(call(*inputs), expected, strict=True):
            np.testing.assert_allclose(result, wanted, rtol=2e-3, atol=2e-4)


def measure(calls: dict[str, Call], inputs: Sequence[np.ndarray], rounds: int) -> dict[str, float]:
    """The least microseconds a call of each, over so many rounds by turns."""
    times = dict.fromkeys(calls, math.inf)
    repeats: dict[str, int] = {}
    for _ in range(rounds):
        for name, call in calls.items():
            started = time.process_time()
            for _ in range(repeats.get(name, 1)):
                call(*inputs)
            took = (time.process_time() - started) / repeats.get(name, 1)
            times[name] = min(times[name], 1e6 * took)
            repeats[name] = max(1, int(BATCH_SECONDS / max(took, 1e-7)))
    return times


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    table = Table(
        "program", "numpy", "native", "ort", "jax", "native/ort", "native/best", "build s"
    )
    for name in PROGRAMS:
        if arguments.only not in name:
            continue
        calls, inputs = contenders(name)
        started = time.perf_counter()
        calls["native"](*inputs)
        built = time.perf_counter() - started
        check(calls, inputs)
        times = measure(calls, inputs, arguments.rounds)
        best = min(value for call, value in times.items() if call != "native")
        ratios = [times["native"] / times["ort"], times["native"] / best, built]
        row = [f"{times[call]:.1f}" for call in calls] + [f"{ratio:.2f}" for ratio in ratios]
        table.add_row(name, *row)
        found[name] = times
        print(name, *row, flush=True)
    Console(width=120).print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
