"""Batches of small matrices on the host beside NumPy, PyTorch and JAX: microseconds of process CPU.

Where NumPy has no such function, SciPy's stands for it.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 XLA_FLAGS=--xla_cpu_multi_thread_eigen=false \\
        python -m bench.linear_algebra [--only qr,svd] [--sizes 4,16] [--batches 32,256]
        [--dtypes float32,complex64] [--rounds 20] [--json FILE]

All take turns in one process, on the same arrays; a figure is the least over the rounds. PyTorch is
left out where it isn't installed. Each result is held against what defines it.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

import smelt
from bench.programs import Call, measure

Made = tuple[np.ndarray, ...]


def general(rng: np.random.Generator, batch: int, n: int, dtype: np.dtype) -> np.ndarray:
    """Matrices of normal numbers."""
    a = rng.standard_normal((batch, n, n))
    if dtype.kind == "c":
        a = a + 1j * rng.standard_normal(a.shape)
    return a.astype(dtype)


def hermitian(rng: np.random.Generator, batch: int, n: int, dtype: np.dtype) -> np.ndarray:
    """Matrices that equal their adjoints."""
    a = general(rng, batch, n, dtype)
    return a + a.conj().swapaxes(-1, -2)


def positive(rng: np.random.Generator, batch: int, n: int, dtype: np.dtype) -> np.ndarray:
    """Hermitian ones whose eigenvalues are positive."""
    a = general(rng, batch, n, dtype)
    return a @ a.conj().swapaxes(-1, -2) + n * np.eye(n, dtype=dtype)


def triangular(rng: np.random.Generator, batch: int, n: int, dtype: np.dtype) -> np.ndarray:
    """Lower triangular ones that are far from singular."""
    return np.tril(general(rng, batch, n, dtype)) + n * np.eye(n, dtype=dtype)


Draw = Callable[[np.random.Generator, int, int, np.dtype], np.ndarray]

OPERATIONS: dict[str, tuple[str, Sequence[Draw]]] = {
    "cholesky": ("cholesky", (positive,)),
    "solve": ("solve", (general, general)),
    "inv": ("inv", (general,)),
    "det": ("det", (general,)),
    "qr": ("qr", (general,)),
    "eigh": ("eigh", (hermitian,)),
    "eig": ("eig", (general,)),
    "svd": ("svd", (general,)),
    "svdvals": ("svdvals", (general,)),
    "lu": ("lu", (general,)),
    "triangular_solve": ("solve_triangular", (triangular, general)),
}
"""By name: the function of ``linalg``, and what it is given."""


def _lower(solve: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: solve(a, b, lower=True)


JAX: dict[str, Callable[..., Any]] = {
    "lu": jax.vmap(jax.scipy.linalg.lu),
    "triangular_solve": _lower(jax.scipy.linalg.solve_triangular),
}
NUMPY: dict[str, Callable[..., Any]] = {
    "lu": scipy.linalg.lu,
    "triangular_solve": _lower(scipy.linalg.solve_triangular),
}
TORCH = {"solve_triangular": {"upper": False}}
"""What is called in another way, or of another name."""


def check(name: str, given: Made, found: Made) -> None:
    """Raises AssertionError unless ``found`` is what the name says, as far as the type can tell."""
    a = given[0].astype(np.complex128 if given[0].dtype.kind == "c" else np.float64)
    n = a.shape[-1]
    eps = float(np.finfo(given[0].dtype).eps)

    def near(x: np.ndarray, y: np.ndarray, by: float = 1) -> None:
        scale = np.abs(y).max(initial=1e-30)
        assert np.abs(x - y).max(initial=0) <= 200 * n * eps * scale * by, name

    def adjoint(x: np.ndarray) -> np.ndarray:
        return x.conj().swapaxes(-1, -2)

    conditions = float(np.linalg.cond(a).max(initial=1))
    if name == "cholesky":
        near(found[0] @ adjoint(found[0]), a)
    elif name == "solve":
        near(found[0], np.linalg.solve(a, given[1]), conditions)
    elif name == "inv":
        near(found[0], np.linalg.inv(a), conditions)
    elif name == "det":
        exact = np.linalg.det(a)
        inside = np.abs(exact) < float(np.finfo(given[0].dtype).max) / 2
        assert np.allclose(found[0][inside], exact[inside], rtol=1e4 * n * eps), name
    elif name == "qr":
        near(found[0] @ found[1], a)
        near(adjoint(found[0]) @ found[0], np.broadcast_to(np.eye(n), a.shape))
    elif name == "eigh":
        near(found[1] * found[0][..., None, :], a @ found[1])
        near(adjoint(found[1]) @ found[1], np.broadcast_to(np.eye(n), a.shape))
    elif name == "eig":
        near(found[1] * found[0][..., None, :], a @ found[1])
    elif name == "svd":
        near(found[0] * found[1][..., None, :] @ found[2], a)
    elif name == "lu":
        near(found[0] @ found[1] @ found[2], a)
    elif name == "triangular_solve":
        near(a @ found[0], given[1], conditions)
    else:
        near(found[0], np.linalg.svd(a, compute_uv=False))


def contenders(name: str, arrays: Made) -> dict[str, Call]:
    """What computes it, by name."""
    function = OPERATIONS[name][0]
    wide = arrays[0].dtype in (np.dtype("float64"), np.dtype("complex128"))
    with jax.enable_x64(wide):
        by_jax = jax.jit(JAX.get(name) or getattr(jnp.linalg, function))
        specs = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in arrays]
        model = smelt.trace(by_jax, *specs)

    def call_jax(*given: np.ndarray) -> Made:
        with jax.enable_x64(wide):
            return tuple(map(np.asarray, jax.tree.leaves(by_jax(*given))))

    def call_numpy(*given: np.ndarray) -> Made:
        found = (NUMPY.get(name) or getattr(np.linalg, function))(*given)
        return tuple(found) if isinstance(found, tuple) else (found,)

    return {
        "smelt": smelt.compile(model, target="host", engine="native"),
        "numpy": call_numpy,
        **({"torch": _by_torch(function)} if find_spec("torch") else {}),
        "jax": call_jax,
    }


def _by_torch(function: str) -> Call:
    import torch

    torch.set_num_threads(1)
    of_torch: Callable[..., Any] = getattr(torch.linalg, function)

    def call(*given: np.ndarray) -> Made:
        with torch.inference_mode():
            options = TORCH.get(function, {})
            found = of_torch(*(torch.from_numpy(array) for array in given), **options)
            one = isinstance(found, torch.Tensor)
            # Of one that says it is the conjugate of what lies there, the numbers are made.
            parts = (found,) if one else tuple(found)
            return tuple(part.resolve_conj().numpy() for part in parts)

    return call


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(OPERATIONS))
    parser.add_argument("--sizes", default="4,8,16,32,64")
    parser.add_argument("--batches", default="1,32,256")
    parser.add_argument("--dtypes", default="float32,float64,complex64,complex128")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found: dict[str, dict[str, float]] = {}
    cases = itertools.product(
        arguments.only.split(","),
        map(np.dtype, arguments.dtypes.split(",")),
        map(int, arguments.sizes.split(",")),
        map(int, arguments.batches.split(",")),
    )
    print("operation smelt numpy torch jax | smelt / best rival", flush=True)
    for name, dtype, n, batch in cases:
        rng = np.random.default_rng(0)
        arrays = tuple(draw(rng, batch, n, dtype) for draw in OPERATIONS[name][1])
        try:
            calls = contenders(name, arrays)
        except smelt.SmeltError as error:
            print(f"{name} {dtype} {batch}x{n}", error.code, str(error).splitlines()[0], flush=True)
            continue
        for each, call in calls.items():
            try:
                check(name, arrays, tuple(call(*arrays)))
            except AssertionError as error:
                print(f"{name} {dtype} {batch}x{n}: {each} is wrong: {error}", flush=True)
        found[f"{name} {dtype} {batch}x{n}"] = times = measure(calls, arrays, arguments.rounds)
        ratio = times["smelt"] / min(took for call, took in times.items() if call != "smelt")
        cells = [f"{times[call]:.1f}" if call in times else "-" for call in calls]
        print(f"{name} {dtype} {batch}x{n}", *cells, f"| {ratio:.2f}", flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
