"""Tensor networks beside opt_einsum, PyTorch and JAX: microseconds of process CPU a call.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false \\
        python -m bench.tensor_networks [--only mps] [--rounds 20] [--json FILE] [--drawn SEED]

All take turns in one process, on the same arrays and by paths of opt_einsum; a figure is the least
over the rounds. PyTorch is left out where it isn't installed. Each result is held against NumPy's.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import opt_einsum
from rich.console import Console
from rich.table import Table

import smelt
from bench.drawn_networks import drawn
from bench.programs import Call, measure
from bench.tensor_network_cases import CASES, Case


def arrays_of(case: Case) -> list[np.ndarray]:
    """Numbers of a size that leaves sums near 1."""
    rng = np.random.default_rng(0)
    dtype, found = np.dtype(case.dtype), []
    for shape in case.shapes:
        array = rng.standard_normal(shape)
        if dtype.kind == "c":
            array = array + 1j * rng.standard_normal(shape)
        found.append((array / max(array.size, 1) ** 0.25).astype(dtype))
    return found


def contenders(case: Case, engine: str) -> dict[str, Call]:
    """What contracts a network, by name."""
    with jax.enable_x64(
        np.dtype(case.dtype).itemsize == 8 * (1 + (np.dtype(case.dtype).kind == "c"))
    ):
        return {
            "smelt": smelt.compile_einsum(case.equation, case.shapes, case.dtype, engine=engine),
            "numpy": _by_numpy(case),
            **({"torch": _by_torch(case)} if find_spec("torch") else {}),
            "jax": _by_jax(case),
        }


def _by_numpy(case: Case) -> Call:
    expression = opt_einsum.contract_expression(case.equation, *case.shapes, optimize="auto")
    return lambda *arrays: (np.asarray(expression(*arrays)),)


def _by_torch(case: Case) -> Call:
    import torch

    torch.set_num_threads(1)
    expression = opt_einsum.contract_expression(case.equation, *case.shapes, optimize="auto")

    def call(*arrays: np.ndarray) -> Sequence[np.ndarray]:
        with torch.inference_mode():
            tensors = [torch.from_numpy(array) for array in arrays]
            return (expression(*tensors, backend="torch").resolve_conj().numpy(),)

    return call


def _by_jax(case: Case) -> Call:
    def contract(*arrays: jax.Array) -> jax.Array:
        return jnp.einsum(case.equation, *arrays, optimize="auto", precision="highest")

    compiled = jax.jit(contract)
    wide = np.dtype(case.dtype) in (np.dtype("float64"), np.dtype("complex128"))

    def call(*arrays: np.ndarray) -> Sequence[np.ndarray]:
        if not wide:
            return (np.asarray(compiled(*arrays)),)
        with jax.enable_x64(True):
            return (np.asarray(compiled(*arrays)),)

    return call


def check(calls: dict[str, Call], arrays: Sequence[np.ndarray]) -> None:
    """All must agree with NumPy before any is timed."""
    (expected,) = calls["numpy"](*arrays)
    scale = float(np.abs(expected).max(initial=0))
    for name, call in calls.items():
        (found,) = call(*arrays)
        assert found.shape == expected.shape, (name, found.shape, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-3 * scale, err_msg=name)


def summary(found: dict[str, dict[str, float]]) -> list[str]:
    """How often smelt is the fastest, and the geometric mean of ratios by rival."""
    lines = []
    best = sum(times["smelt"] <= min(times.values()) * 1.02 for times in found.values())
    lines.append(f"smelt is the fastest, or within 2 %, on {best} of {len(found)}")
    for rival in ("numpy", "torch", "jax"):
        logs = [math.log(t["smelt"] / t[rival]) for t in found.values() if rival in t]
        if logs:
            lines.append(
                f"geometric mean of smelt over {rival}: {math.exp(sum(logs) / len(logs)):.3f}"
            )
    return lines


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--engine", default="native")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--drawn", type=int, metavar="SEED", help="65 networks at random instead")
    arguments = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    compile_seconds: Callable[[], float] = time.process_time
    table = Table("network", "smelt", "numpy", "torch", "jax", "of the best rival", "compile ms")
    cases = CASES if arguments.drawn is None else drawn(65, arguments.drawn)
    for name, case in cases.items():
        if not any(part in name for part in arguments.only.split(",")):
            continue
        started = compile_seconds()
        try:
            smelt.compile_einsum(case.equation, case.shapes, case.dtype, engine=arguments.engine)
        except smelt.SmeltError as error:
            print(name, error.code, error, flush=True)
            continue
        took = 1e3 * (compile_seconds() - started)
        calls, arrays = contenders(case, arguments.engine), arrays_of(case)
        check(calls, arrays)
        found[name] = times = measure(calls, arrays, arguments.rounds)
        rivals = min(value for call, value in times.items() if call != "smelt")
        cells = [
            f"{times[call]:.1f}" if call in times else "-"
            for call in ("smelt", "numpy", "torch", "jax")
        ]
        row = [name, *cells, f"{times['smelt'] / rivals:.2f}", f"{took:.0f}"]
        table.add_row(*row)
        print(*row, flush=True)
    Console(width=120).print(table)
    print(*summary(found), sep="\n")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
