"""JAX's calls of LAPACK, as the functions of ``jax.lax.linalg`` that make them.

A result is None if LAPACK does not compute it for this call, or if JAX never reads it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from smelt.frontends.stablehlo import jax_names
from smelt.frontends.stablehlo.operation import Operation

_LAPACK = re.compile(r"lapack_[sdcz](\w+?)(_ffi)?")
CONFIG = "mhlo.backend_config"

Solver = Callable[[Operation, Any], list[Any]]


def _letter(op: Operation, name: str) -> str:
    """Return a LAPACK parameter that is encoded as the code of a letter."""
    return chr(op.entry(CONFIG, name, ord("?")))


def _done(x: Any) -> Any:
    """Return LAPACK's info as success; where JAX cannot compute, its lowering returns NaN
    itself."""
    return jnp.zeros(x.shape[:-2], jnp.int32)


def _potrf(op: Operation, given: Any) -> list[Any]:
    if _letter(op, "uplo") != "L":
        raise op.unsupported("it asks for the upper factor, which JAX never does")
    return [lax.linalg.cholesky(given[0], symmetrize_input=False), _done(given[0])]


def _getrf(op: Operation, given: Any) -> list[Any]:
    factors, pivots, _ = lax.linalg.lu(given[0])
    return [factors, pivots + 1, _done(given[0])]


def _geqrf(op: Operation, given: Any) -> list[Any]:
    return list(jax_names.geqrf(given[0]))


def _orgqr(op: Operation, given: Any) -> list[Any]:
    return [lax.linalg.householder_product(given[0], given[1])]


def _gesdd(op: Operation, given: Any) -> list[Any]:
    x, mode = given[0], _letter(op, "mode")
    if mode == "N":
        # LAPACK writes no vectors in this mode, so nothing reads them.
        return [x, lax.linalg.svd(x, compute_uv=False), None, None, _done(x)]
    u, s, v = lax.linalg.svd(x, full_matrices=mode == "A", compute_uv=True)
    return [x, s, u, v, _done(x)]


def _syevd(op: Operation, given: Any) -> list[Any]:
    lower = _letter(op, "uplo") == "L"
    vectors, values = lax.linalg.eigh(
        given[0], lower=lower, symmetrize_input=False, sort_eigenvalues=False
    )
    return [vectors, values, _done(given[0])]


def _trsm(op: Operation, given: Any) -> list[Any]:
    """Solve a triangular system."""
    found = lax.linalg.triangular_solve(
        given[0],
        given[1],
        left_side=_letter(op, "side") == "L",
        lower=_letter(op, "uplo") == "L",
        transpose_a=_letter(op, "trans_x") in "TC",
        conjugate_a=_letter(op, "trans_x") == "C",
        unit_diagonal=_letter(op, "diag") == "U",
    )
    return [found]


def _geev(op: Operation, given: Any) -> list[Any]:
    left, right = (_letter(op, f"compute_{side}") == "V" for side in ("left", "right"))
    w, *vectors = lax.linalg.eig(
        given[0], compute_left_eigenvectors=left, compute_right_eigenvectors=right
    )
    parts = [w] if jnp.iscomplexobj(given[0]) else [w.real, w.imag]
    found = iter(vectors)
    return [*parts, next(found) if left else None, next(found) if right else None, _done(given[0])]


def _gees(op: Operation, given: Any) -> list[Any]:
    if _letter(op, "sort") != "N":
        raise op.unsupported("it sorts eigenvalues, which JAX never does")
    # JAX reads the form and its vectors; eigenvalues are on the diagonal of the form.
    asked = _letter(op, "mode") == "V"
    form, *vectors = lax.linalg.schur(given[0], compute_schur_vectors=asked)
    between = [None] * (len(op.view.results) - 3)
    return [form, vectors[0] if asked else None, *between, _done(given[0])]


def _gehrd(op: Operation, given: Any) -> list[Any]:
    x = given[0]
    if (op.entry(CONFIG, "low"), op.entry(CONFIG, "high")) != (1, x.shape[-1]):
        raise op.unsupported("it reduces a part of the matrix, which JAX never does")
    return [*lax.linalg.hessenberg(x), _done(x)]


def _sytrd(op: Operation, given: Any) -> list[Any]:
    lower = _letter(op, "uplo") == "L"
    return [*lax.linalg.tridiagonal(given[0], lower=lower), _done(given[0])]


def _gtsv(op: Operation, given: Any) -> list[Any]:
    # The factors overwrite the diagonals, and JAX does not read them.
    return [None, None, None, lax.linalg.tridiagonal_solve(*given[:4]), _done(given[3])]


SOLVERS: dict[str, Solver] = {
    "potrf": _potrf,
    "getrf": _getrf,
    "geqrf": _geqrf,
    "orgqr": _orgqr,
    "ungqr": _orgqr,
    "gesdd": _gesdd,
    "syevd": _syevd,
    "heevd": _syevd,
    "trsm": _trsm,
    "geev": _geev,
    "gees": _gees,
    "gehrd": _gehrd,
    "sytrd": _sytrd,
    "hetrd": _sytrd,
    "gtsv": _gtsv,
}
"""LAPACK routines by name, without the type letter."""


def solver_of(target: str) -> Solver | None:
    """Return the reader of calls of ``target``; None if JAX does not call that routine."""
    found = _LAPACK.fullmatch(target)
    return SOLVERS.get(found.group(1)) if found else None
