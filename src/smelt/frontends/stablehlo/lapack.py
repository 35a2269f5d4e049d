"""Read JAX's calls of LAPACK as the functions of ``jax.lax.linalg`` that write these calls.

Each reader takes the operands of the routine and returns its results. A result is None if LAPACK
does not compute it for this call, or if JAX never reads it.
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
    """Return the LAPACK parameter ``name`` as a letter, such as ``L`` for the lower triangle.

    The call stores the letter's character code.
    """
    return chr(op.entry(CONFIG, name, ord("?")))


def _success(x: Any) -> Any:
    """Return LAPACK's ``info`` as success: int32 zeros, one for each matrix of the batch.

    Where LAPACK fails, JAX's own lowering writes NaN.
    """
    return jnp.zeros(x.shape[:-2], jnp.int32)


def _potrf(op: Operation, operands: Any) -> list[Any]:
    """Return the lower Cholesky factor and info."""
    if _letter(op, "uplo") != "L":
        raise op.unsupported("it asks for the upper factor, which JAX never does")
    return [lax.linalg.cholesky(operands[0], symmetrize_input=False), _success(operands[0])]


def _getrf(op: Operation, operands: Any) -> list[Any]:
    """Return the packed LU factors, pivots counted from 1, and info."""
    factors, pivots, _ = lax.linalg.lu(operands[0])
    return [factors, pivots + 1, _success(operands[0])]


def _geqrf(op: Operation, operands: Any) -> list[Any]:
    """Return the packed QR factors and the scales of the reflectors."""
    return list(jax_names.geqrf(operands[0]))


def _orgqr(op: Operation, operands: Any) -> list[Any]:
    """Return the matrix Q that packed Householder reflectors define."""
    return [lax.linalg.householder_product(operands[0], operands[1])]


def _gesdd(op: Operation, operands: Any) -> list[Any]:
    """Return the SVD: a placeholder for the overwritten operand, S, U, V transposed, and info."""
    x, mode = operands[0], _letter(op, "mode")
    if mode == "N":
        # LAPACK writes no vectors in this mode, so nothing reads them.
        return [x, lax.linalg.svd(x, compute_uv=False), None, None, _success(x)]
    u, s, v = lax.linalg.svd(x, full_matrices=mode == "A", compute_uv=True)
    return [x, s, u, v, _success(x)]


def _syevd(op: Operation, operands: Any) -> list[Any]:
    """Return eigenvectors, eigenvalues and info of a symmetric or Hermitian matrix."""
    lower = _letter(op, "uplo") == "L"
    vectors, values = lax.linalg.eigh(
        operands[0], lower=lower, symmetrize_input=False, sort_eigenvalues=False
    )
    return [vectors, values, _success(operands[0])]


def _trsm(op: Operation, operands: Any) -> list[Any]:
    """Return the solution of a triangular system."""
    solution = lax.linalg.triangular_solve(
        operands[0],
        operands[1],
        left_side=_letter(op, "side") == "L",
        lower=_letter(op, "uplo") == "L",
        transpose_a=_letter(op, "trans_x") in "TC",
        conjugate_a=_letter(op, "trans_x") == "C",
        unit_diagonal=_letter(op, "diag") == "U",
    )
    return [solution]


def _geev(op: Operation, operands: Any) -> list[Any]:
    """Return eigenvalues (real and imaginary part for real matrices), left and right
    vectors, info.
    """
    left, right = (_letter(op, f"compute_{side}") == "V" for side in ("left", "right"))
    w, *vectors = lax.linalg.eig(
        operands[0], compute_left_eigenvectors=left, compute_right_eigenvectors=right
    )
    parts = [w] if jnp.iscomplexobj(operands[0]) else [w.real, w.imag]
    left_vectors = vectors.pop(0) if left else None
    right_vectors = vectors.pop(0) if right else None
    return [*parts, left_vectors, right_vectors, _success(operands[0])]


def _gees(op: Operation, operands: Any) -> list[Any]:
    """Return the Schur form, its vectors and info.

    The eigenvalues are None, because JAX reads them off the diagonal of the form.
    """
    if _letter(op, "sort") != "N":
        raise op.unsupported("it sorts eigenvalues, which JAX never does")

    with_vectors = _letter(op, "mode") == "V"
    form, *vectors = lax.linalg.schur(operands[0], compute_schur_vectors=with_vectors)
    unread = [None] * (len(op.view.results) - 3)
    return [form, vectors[0] if with_vectors else None, *unread, _success(operands[0])]


def _gehrd(op: Operation, operands: Any) -> list[Any]:
    """Return the packed Hessenberg form, the scales of the reflectors, and info."""
    x = operands[0]
    if (op.entry(CONFIG, "low"), op.entry(CONFIG, "high")) != (1, x.shape[-1]):
        raise op.unsupported("it reduces only a part of the matrix")
    return [*lax.linalg.hessenberg(x), _success(x)]


def _sytrd(op: Operation, operands: Any) -> list[Any]:
    """Return the packed tridiagonal form, its diagonals, the scales of the reflectors, and info."""
    lower = _letter(op, "uplo") == "L"
    return [*lax.linalg.tridiagonal(operands[0], lower=lower), _success(operands[0])]


def _gtsv(op: Operation, operands: Any) -> list[Any]:
    """Return the solution of a tridiagonal system and info; the overwritten diagonals are None."""
    # LAPACK overwrites the diagonals by the factors, which JAX does not read.
    return [None, None, None, lax.linalg.tridiagonal_solve(*operands[:4]), _success(operands[3])]


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
    match = _LAPACK.fullmatch(target)
    return SOLVERS.get(match.group(1)) if match else None
