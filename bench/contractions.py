"""100 tensor networks, 20 of them sliced, beside other packages: microseconds of CPU a call.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false \\
        python -m bench.contractions [--only mps] [--rounds 20] [--json FILE] [--drawn SEED]

Packages take turns in one process, on the same arrays and by the path that opt_einsum finds; a
figure is the least over the rounds. The memory limit of a sliced network is an eighth of the
elements of its largest product, or the elements of its largest operand if those are more. smelt,
cotengra and quimb keep to the limit, each with its own slices; the others compute the network
whole. Packages that are not installed, or cannot express a network, are left out. Each result is
compared with opt_einsum's before it is timed.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import opt_einsum
from rich.console import Console
from rich.table import Table

import smelt
from bench.drawn_networks import drawn
from bench.programs import Call, measure
from bench.tensor_network_cases import (
    CASES,
    Case,
    brickwork,
    lattice,
    random_regular,
)


def arrays_of(case: Case) -> list[np.ndarray]:
    """Return random arrays, divided by the fourth root of their size, so that sums stay near 1."""
    rng = np.random.default_rng(0)
    dtype, found = np.dtype(case.dtype), []
    for shape in case.shapes:
        array = rng.standard_normal(shape)
        if dtype.kind == "c":
            array = array + 1j * rng.standard_normal(shape)
        found.append((array / max(array.size, 1) ** 0.25).astype(dtype))
    return found


RIVALS = ("opt_einsum", "cotengra", "quimb", "torch", "jax")
SLOW = 2.0
"""Seconds. cotengra and quimb are called once if a call takes longer, as with 65,536 slices."""
DRAWN, SLICED = 12, 20
"""The networks that are drawn at random, and those of the drawn ones that are sliced, of 100."""


def all_cases() -> dict[str, Case]:
    """Return 100 networks by name: 68 by hand, 12 drawn, and 20 with a memory limit."""
    found = {**CASES, **drawn(DRAWN, seed=1)}
    for name, case in _large_networks():
        _, told = opt_einsum.contract_path(case.equation, *case.shapes, shapes=True)
        largest = int(told.largest_intermediate)
        operands = max(math.prod(shape) for shape in case.shapes)
        limit = max(largest // 8, operands)
        if 2 * limit <= largest:
            found[f"{name}-sliced"] = replace(case, limit=limit)
        if len(found) == len(CASES) + DRAWN + SLICED:
            break
    return found


def _large_networks() -> Iterator[tuple[str, Case]]:
    """Yield networks whose products are larger than their operands."""
    for name, case in CASES.items():
        if name.startswith(("peps", "lattice", "random", "graphical", "brickwork")):
            yield name, case
    for size in (4, 5, 6):
        yield f"lattice-{size}x{size}-3", lattice(size, size, 3)
        yield f"lattice-{size}x7-c64", lattice(size, 7, 2, "complex64")
        yield f"brickwork-{2 * size}x10", brickwork(2 * size, 10, "complex64")
    for count in (24, 30, 36, 44):
        yield f"random-{count}", random_regular(count, 3, 3)
    yield "random-50", random_regular(50, 3, 2)


def contenders(case: Case, engine: str) -> dict[str, Call]:
    """Return the calls that contract the network of ``case``, by the name of the package.

    ``engine`` is that of ``smelt.compile_einsum``; torch and cotengra are there if installed.
    """
    ours = smelt.compile_einsum(
        case.equation, case.shapes, case.dtype, engine=engine, memory_limit=case.limit
    )
    return {
        "smelt": ours,
        "opt_einsum": _by_numpy(case),
        **({"cotengra": _by_cotengra(case)} if find_spec("cotengra") else {}),
        **({"quimb": _by_quimb(case)} if find_spec("quimb") else {}),
        **({"torch": _by_torch(case)} if find_spec("torch") else {}),
        "jax": _by_jax(case),
    }


def _tree(case: Case) -> Any:
    """Return cotengra's tree of the path of opt_einsum, sliced for the limit."""
    import cotengra

    left, _, out = case.equation.partition("->")
    inputs = [tuple(term) for term in left.split(",")]
    sizes = {
        label: size
        for term, shape in zip(inputs, case.shapes, strict=True)
        for label, size in zip(term, shape, strict=True)
    }
    path, _ = opt_einsum.contract_path(case.equation, *case.shapes, shapes=True)
    tree = cotengra.ContractionTree.from_path(inputs, tuple(out), sizes, path=path)
    return tree if case.limit is None else tree.slice(target_size=case.limit, seed=0)


def _by_cotengra(case: Case) -> Call:
    """Return the contraction by cotengra, slice by slice."""
    tree = _tree(case)
    return lambda *arrays: (np.asarray(tree.contract(arrays)),)


def _by_quimb(case: Case) -> Call:
    """Return the contraction of quimb's tensors by the tree of cotengra."""
    import quimb.tensor as qtn

    tree = _tree(case)
    left, _, out = case.equation.partition("->")
    terms = [tuple(term) for term in left.split(",")]

    def call(*arrays: np.ndarray) -> Sequence[np.ndarray]:
        tensors = [qtn.Tensor(a, inds) for a, inds in zip(arrays, terms, strict=True)]
        found = qtn.tensor_contract(
            *tensors, output_inds=tuple(out), optimize=tree, preserve_tensor=True
        )
        return (np.asarray(found.data),)

    return call


def _by_numpy(case: Case) -> Call:
    """Return the contraction by opt_einsum with NumPy's products."""
    expression = opt_einsum.contract_expression(case.equation, *case.shapes, optimize="auto")
    return lambda *arrays: (np.asarray(expression(*arrays)),)


def _by_torch(case: Case) -> Call:
    """Return the contraction by opt_einsum with PyTorch's products, on one thread."""
    import torch

    torch.set_num_threads(1)
    expression = opt_einsum.contract_expression(case.equation, *case.shapes, optimize="auto")

    def call(*arrays: np.ndarray) -> Sequence[np.ndarray]:
        with torch.inference_mode():
            tensors = [torch.from_numpy(array) for array in arrays]
            return (expression(*tensors, backend="torch").resolve_conj().numpy(),)

    return call


def _by_jax(case: Case) -> Call:
    """Return the contraction that XLA compiles from ``jnp.einsum``; 64-bit types need x64."""

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


def checked(
    calls: dict[str, Call], arrays: Sequence[np.ndarray], name: str
) -> tuple[dict[str, Call], dict[str, float]]:
    """Return the calls to time, and the microseconds of those too slow to be called again.

    Calls that cannot contract the network are left out; all others must agree with opt_einsum's.
    """
    (expected,) = calls["opt_einsum"](*arrays)
    scale = float(np.abs(expected).max(initial=0))
    able: dict[str, Call] = {}
    slow: dict[str, float] = {}
    for rival, call in calls.items():
        started = time.process_time()
        try:
            (found,) = call(*arrays)
        except (ValueError, KeyError, TypeError, IndexError, NotImplementedError) as error:
            if rival == "smelt":
                raise
            print(f"{name}: {rival} is left out: {str(error)[:80]}", flush=True)
            continue
        assert found.shape == expected.shape, (rival, found.shape, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-3 * scale, err_msg=rival)
        took = time.process_time() - started
        if took > SLOW and rival in ("cotengra", "quimb"):  # the others compile in their first call
            slow[rival] = 1e6 * took
        else:
            able[rival] = call
    return able, slow


def summary(found: dict[str, dict[str, float]]) -> list[str]:
    """Return how often smelt is the fastest, and for each rival the geometric mean of the ratios.

    ``found`` has the microseconds of each package, by network.
    """
    lines = []
    if not found:
        return ["no network was measured"]
    best = sum(times["smelt"] <= min(times.values()) * 1.02 for times in found.values())
    lines.append(f"smelt is the fastest, or within 2 %, on {best} of {len(found)}")
    for rival in RIVALS:
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
    table = Table("network", "smelt", *RIVALS, "of the best rival", "compile ms")
    cases = all_cases() if arguments.drawn is None else drawn(65, arguments.drawn)
    for name, case in cases.items():
        if not any(part in name for part in arguments.only.split(",")):
            continue
        started = compile_seconds()
        try:
            smelt.compile_einsum(
                case.equation,
                case.shapes,
                case.dtype,
                engine=arguments.engine,
                memory_limit=case.limit,
            )
        except smelt.SmeltError as error:
            print(name, error.code, error, flush=True)
            continue
        took = 1e3 * (compile_seconds() - started)
        calls, arrays = contenders(case, arguments.engine), arrays_of(case)
        calls, slow = checked(calls, arrays, name)
        found[name] = times = measure(calls, arrays, arguments.rounds) | slow
        rivals = min(value for call, value in times.items() if call != "smelt")
        cells = [f"{times[call]:.1f}" if call in times else "-" for call in ("smelt", *RIVALS)]
        row = [name, *cells, f"{times['smelt'] / rivals:.2f}", f"{took:.0f}"]
        table.add_row(*row)
        print(*row, flush=True)
    Console(width=120).print(table)
    print(*summary(found), sep="\n")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
