"""Linear algebra that ONNX lacks, as operators of the ``smelt`` domain."""

from __future__ import annotations

import onnx_ir as ir

from smelt.errors import Unsupported
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.registry import lowers

REAL = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


@lowers("cholesky")
def cholesky(cx: Lowering, a: ir.Value) -> ir.Value:
    """JAX masks the upper triangle itself; the operator leaves it zero."""
    _check_real(a)
    return cx.op("Cholesky", a, domain="smelt", lower=1)


@lowers("triangular_solve")
def triangular_solve(
    cx: Lowering,
    a: ir.Value,
    b: ir.Value,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> ir.Value:
    """The conjugate of a real matrix is the matrix."""
    _check_real(a)
    return cx.op(
        "TriangularSolve",
        a,
        b,
        domain="smelt",
        left_side=int(left_side),
        lower=int(lower),
        transpose_a=int(transpose_a),
        unit_diagonal=int(unit_diagonal),
    )


def _check_real(a: ir.Value) -> None:
    if a.dtype not in REAL:
        raise Unsupported(
            "E102",
            f"linear algebra on {a.dtype.name.lower() if a.dtype else 'unknown'} is not supported",
            why="it is there for float32 and float64",
            fix="convert the matrix first",
        )
