"""Triangular and orthogonal factors of complex matrices, computed on their parts.

QR is a loop over columns, as LAPACK's unblocked geqr2; the others are operators on parts. Matrices
are the last two dims, of any size; those before are batches.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from smelt.errors import Unsupported
from smelt.frontends.jax import compat
from smelt.frontends.jax.complex_numbers.parts import Array, Parts, Value, real
from smelt.frontends.jax.source_lines import place


def where(test: Array, yes: Parts, no: Parts) -> Parts:
    """Elements of ``yes`` where ``test`` holds, else of ``no``."""
    return Parts(jnp.where(test, yes.re, no.re), jnp.where(test, yes.im, no.im))


def product(a: Parts, b: Parts) -> Parts:
    """The product of matrices."""
    return Parts(a.re @ b.re - a.im @ b.im, a.re @ b.im + a.im @ b.re)


def transposed(a: Parts) -> Parts:
    """Rows become columns."""
    return Parts(jnp.swapaxes(a.re, -1, -2), jnp.swapaxes(a.im, -1, -2))


def adjoint(a: Parts) -> Parts:
    """Rows become columns, conjugated."""
    return transposed(a).conjugate()


def line(a: Parts, k: Array, axis: int) -> Parts:
    """Row ``k`` (``axis`` -2) or column ``k`` (-1), as a matrix of one."""
    re, im = (lax.dynamic_index_in_dim(part, k, axis) for part in (a.re, a.im))
    return Parts(re, im)


def identity(a: Parts, size: Any) -> Parts:
    """The identity of ``size`` for each matrix of ``a``."""
    shape = (*a.re.shape[:-2], size, size)
    return real(jnp.broadcast_to(jnp.eye(size, dtype=a.re.dtype), shape))


def rows_and_columns(a: Parts) -> tuple[Array, Array]:
    """Numbers of the rows, [rows, 1], and of the columns, [1, columns]."""
    rows, columns = a.re.shape[-2:]
    return jnp.arange(rows)[:, None], jnp.arange(columns)[None, :]


def squared(a: Parts) -> Array:
    """The squares of the magnitudes."""
    return a.re * a.re + a.im * a.im


COMPLEX_LU = "complex_lu_parts"


def _lu_avals(re: compat.Aval, im: compat.Aval) -> list[compat.Aval]:
    *batch, rows, columns = re.shape
    factors = compat.ShapedArray(re.shape, re.dtype)
    pivots = compat.ShapedArray((*batch, min(rows, columns)), jnp.int32)
    return [factors, factors, pivots, compat.ShapedArray((*batch, rows), jnp.int32)]


_complex_lu = compat.Primitive(COMPLEX_LU)
_complex_lu.multiple_results = True
_complex_lu.def_abstract_eval(_lu_avals)


def lu(equation: compat.Equation, values: list[Any]) -> list[Value]:
    """Factors, pivots and the order of the rows."""
    (a,) = values
    re, im, pivots, order = _complex_lu.bind(a.re, a.im)
    return [Parts(re, im), pivots, order]


def _repeat(count: Any, step: Any, state: Any) -> Any:
    """``step`` for 0, 1, ... below ``count``; its state may hold ``Parts``."""
    if isinstance(count, int) and count == 0:  # an empty matrix has no column 0 to trace with
        return state
    split = [isinstance(value, Parts) for value in state]

    def packed(values: Any) -> Any:
        return tuple((v.re, v.im) if two else v for v, two in zip(values, split, strict=True))

    def opened(values: Any) -> Any:
        return tuple(Parts(*v) if two else v for v, two in zip(values, split, strict=True))

    run = lax.fori_loop(0, count, lambda k, s: packed(step(k, opened(s))), packed(state))
    return opened(run)


COMPLEX_SOLVE = "complex_triangular_solve_parts"


def _solve_avals(*parts: compat.Aval, **flags: bool) -> list[compat.Aval]:
    return [compat.ShapedArray(parts[2].shape, parts[2].dtype)] * 2


_complex_solve = compat.Primitive(COMPLEX_SOLVE)
_complex_solve.multiple_results = True
_complex_solve.def_abstract_eval(_solve_avals)


def triangular_solve(equation: compat.Equation, values: list[Any]) -> list[Value]:
    """Of a system of which one side may be real."""
    a, b = (value if isinstance(value, Parts) else real(value) for value in values)
    return [Parts(*_complex_solve.bind(a.re, a.im, b.re, b.im, **equation.params))]


COMPLEX_CHOLESKY = "complex_cholesky_parts"


def _cholesky_avals(re: compat.Aval, im: compat.Aval) -> list[compat.Aval]:
    return [compat.ShapedArray(re.shape, re.dtype)] * 2


_complex_cholesky = compat.Primitive(COMPLEX_CHOLESKY)
_complex_cholesky.multiple_results = True
_complex_cholesky.def_abstract_eval(_cholesky_avals)


def cholesky(equation: compat.Equation, values: list[Any]) -> list[Value]:
    """The lower factor."""
    (a,) = values
    return [Parts(*_complex_cholesky.bind(a.re, a.im))]


COMPLEX_QR = "complex_qr_parts"


def _qr_avals(re: compat.Aval, im: compat.Aval, *, full_matrices: bool) -> list[compat.Aval]:
    *batch, rows, columns = re.shape
    inner = rows if full_matrices else min(rows, columns)
    unitary = compat.ShapedArray((*batch, rows, inner), re.dtype)
    return [unitary] * 2 + [compat.ShapedArray((*batch, inner, columns), re.dtype)] * 2


_complex_qr = compat.Primitive(COMPLEX_QR)
_complex_qr.multiple_results = True
_complex_qr.def_abstract_eval(_qr_avals)


def qr(equation: compat.Equation, values: list[Any]) -> list[Value]:
    """As geqr2: reflections that make the diagonal of R real."""
    params = equation.params
    (a,) = values
    if params["pivoting"]:
        raise Unsupported(
            "E105",
            "qr with pivoting is not supported on complex numbers",
            at=place(equation),
            why="no rule writes this one with real numbers",
            fix="leave pivoting=False",
        )
    q_re, q_im, re, im = _complex_qr.bind(a.re, a.im, full_matrices=params["full_matrices"])
    return [Parts(q_re, q_im), Parts(re, im)]
