"""Linear algebra that ONNX lacks, as operators of the ``smelt`` domain."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import onnx_ir as ir
from jax import lax

from smelt.errors import Unsupported
from smelt.frontends.jax.compat import make_jaxpr, struct
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.patching.library_functions import SOLVE
from smelt.frontends.jax.patching.patches import Patch, register
from smelt.frontends.jax.patching.replacement import Function
from smelt.frontends.jax.registry import lowers

REAL = (ir.DataType.FLOAT, ir.DataType.DOUBLE)


@lowers("cholesky")
def cholesky(cx: Lowering, a: ir.Value) -> ir.Value:
    """Lower to Cholesky: the lower factor of ``a [..., n, n]``, with zeros above the diagonal."""
    check_real(a)
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
    """Lower to TriangularSolve; ``conjugate_a`` has no effect on real matrices."""
    check_real(a)
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


@lowers("cholesky_update")
def cholesky_update(cx: Lowering, r: ir.Value, w: ir.Value) -> list[Operand]:
    """Return the upper factor of ``r.T @ r + outer(w, w)`` for ``r [n, n]`` and ``w [n]``.

    n Givens rotations, one for each row of ``r`` (Golub and Van Loan, Matrix Computations, 6.5.4).
    """
    check_real(r)

    def update(r: Any, w: Any) -> Any:
        """Return the new factor ``[n, n]``: a scan over the rows of ``r`` that carries ``w``."""

        def step(w: Any, row: tuple[Any, Any]) -> tuple[Any, Any]:
            """Return the new ``w`` and row k of ``r``, rotated so that ``w[k]`` becomes 0.

            c = r[k, k] / h and s = w[k] / h with h = hypot(r[k, k], w[k]). Both are divided by the
            larger first, against overflow; if ``w[k]`` is 0, the rotation is the identity (as in
            BLAS ``rotg``).
            """
            values, k = row
            diagonal, to_clear = values[k], w[k]
            scale = jnp.maximum(abs(diagonal), abs(to_clear))
            scale = jnp.where(to_clear == 0, 1, scale)
            diagonal, to_clear = diagonal / scale, to_clear / scale
            length = lax.sqrt(diagonal * diagonal + to_clear * to_clear)
            cosine, sine = (
                jnp.where(to_clear == 0, 1, diagonal / length),
                jnp.where(to_clear == 0, 0, to_clear / length),
            )
            return cosine * w - sine * values, cosine * values + sine * w

        return lax.scan(step, w, (r, jnp.arange(r.shape[0])))[1]

    structs = tuple(struct(tuple(aval.shape), aval.dtype) for aval in cx.avals_in)
    return cx.inline(make_jaxpr(update, structs)[0], cx.operands)


@lowers("custom_linear_solve", broadcasts=True)
def custom_linear_solve(
    cx: Lowering, *_: ir.Value, const_lengths: Any, jaxprs: Any
) -> list[Operand]:
    """Inline the jaxpr of the solver, the only one of four jaxprs that a model needs.

    The operands are the constants of the four jaxprs, then the right-hand sides.
    """
    before = const_lengths.matvec + const_lengths.vecmat
    constants = cx.operands[before : before + const_lengths.solve]
    right_hand_sides = cx.operands[sum(const_lengths) :]
    return cx.inline(jaxprs.solve, [*constants, *right_hand_sides])


def _solve(original: Function) -> Function:
    """Return a replacement of JAX's solver of ``a @ x = b`` that expands 1x1 and 2x2 matrices.

    ``inv`` calls the solver, too. A 2x2 matrix becomes 27 nodes; LU factors would be local
    functions of 128 nodes.
    """

    def solve(a: Any, b: Any) -> Any:
        """Return ``x`` of ``a @ x = b``; JAX's solver computes it unless ``a`` is 1x1 or 2x2."""
        if a.dtype not in (jnp.float32, jnp.float64) or a.shape not in ((1, 1), (2, 2)):
            return original(a, b)
        return b / a[0] if a.shape == (1, 1) else _solve_two_rows(a, b)

    return solve


def _solve_two_rows(a: Any, b: Any) -> Any:
    """Return the solution of ``a [2, 2]`` and ``b [2]`` or ``[2, n]`` by elimination with pivoting.

    The pivot is chosen as in LAPACK ``getrf``: rows are swapped if the second has the larger first
    element. So residuals and results for singular matrices match JAX; Cramer's rule would differ.
    """
    columns = b if b.ndim == 2 else b[:, None]
    first, second = lax.split(a, (1, 1), 0)
    (first_0, first_1), (second_0, second_1) = (
        lax.split(row, (1, 1), 1) for row in (first, second)
    )
    b_first, b_second = lax.split(columns, (1, 1), 0)
    swapped = abs(second_0) > abs(first_0)
    pivot = jnp.where(swapped, second_0, first_0)
    pivot_right = jnp.where(swapped, second_1, first_1)
    low_0, low_1 = jnp.where(swapped, first_0, second_0), jnp.where(swapped, first_1, second_1)
    b_top, b_low = jnp.where(swapped, b_second, b_first), jnp.where(swapped, b_first, b_second)
    factor = jnp.where(pivot == 0, low_0, low_0 / pivot)
    x_second = (b_low - factor * b_top) / (low_1 - factor * pivot_right)
    x_first = (b_top - pivot_right * x_second) / pivot
    return jnp.concatenate([x_first, x_second]).reshape(b.shape)


register(Patch(SOLVE.target, _solve, parameters=SOLVE.parameters))


def check_real(a: ir.Value) -> None:
    """Raise E102 unless ``a`` holds float32 or float64."""
    if a.dtype not in REAL:
        raise Unsupported(
            "E102",
            f"linear algebra on {a.dtype.name.lower() if a.dtype else 'unknown'} is not supported",
            why="only float32 and float64 are supported",
            fix="convert the matrix first",
        )
