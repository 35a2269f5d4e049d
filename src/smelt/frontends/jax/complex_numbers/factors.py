"""LU, triangular solve, Cholesky and QR of complex matrices, as primitives on parts.

Each primitive is one operator on the real and imaginary parts. A matrix is the last two dims, of
any size; earlier dims are batches.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from smelt.errors import Unsupported
from smelt.frontends.jax import compat
from smelt.frontends.jax.complex_numbers.parts import Parts, Value, primitive, real
from smelt.frontends.jax.source_lines import place

COMPLEX_LU = "complex_lu_parts"


def _lu_avals(re: compat.Aval, im: compat.Aval) -> list[compat.Aval]:
    """Return the types of the factors' parts, the pivots and the order of rows.

    Factors are ``[..., m, n]``, pivots ``[..., min(m, n)]``, the order is ``[..., m]``.
    """
    *batch, rows, columns = re.shape
    factors = compat.ShapedArray(re.shape, re.dtype)
    pivots = compat.ShapedArray((*batch, min(rows, columns)), jnp.int32)
    return [factors, factors, pivots, compat.ShapedArray((*batch, rows), jnp.int32)]


_complex_lu = primitive(COMPLEX_LU, _lu_avals)


def lu(equation: compat.Equation, values: list[Any]) -> list[Value]:
    """Return the LU factors, the pivots and the row permutation."""
    (a,) = values
    re, im, pivots, order = _complex_lu.bind(a.re, a.im)
    return [Parts(re, im), pivots, order]


COMPLEX_SOLVE = "complex_triangular_solve_parts"


def _solve_avals(*parts: compat.Aval, **flags: bool) -> list[compat.Aval]:
    """Return the types of the solution's parts: those of the right-hand side."""
    return [compat.ShapedArray(parts[2].shape, parts[2].dtype)] * 2


_complex_solve = primitive(COMPLEX_SOLVE, _solve_avals)


def triangular_solve(equation: compat.Equation, values: list[Any]) -> list[Value]:
    """Return the solution of a complex triangular system; one side may be real."""
    a, b = (value if isinstance(value, Parts) else real(value) for value in values)
    return [Parts(*_complex_solve.bind(a.re, a.im, b.re, b.im, **equation.params))]


COMPLEX_CHOLESKY = "complex_cholesky_parts"


def _cholesky_avals(re: compat.Aval, im: compat.Aval) -> list[compat.Aval]:
    """Return the types of the factor's parts."""
    return [compat.ShapedArray(re.shape, re.dtype)] * 2


_complex_cholesky = primitive(COMPLEX_CHOLESKY, _cholesky_avals)


def cholesky(equation: compat.Equation, values: list[Any]) -> list[Value]:
    """Return the lower Cholesky factor."""
    (a,) = values
    return [Parts(*_complex_cholesky.bind(a.re, a.im))]


COMPLEX_QR = "complex_qr_parts"


def _qr_avals(re: compat.Aval, im: compat.Aval, *, full_matrices: bool) -> list[compat.Aval]:
    """Return the types of the parts of Q ``[..., m, inner]`` and of R ``[..., inner, n]``."""
    *batch, rows, columns = re.shape
    inner = rows if full_matrices else min(rows, columns)
    unitary = compat.ShapedArray((*batch, rows, inner), re.dtype)
    return [unitary] * 2 + [compat.ShapedArray((*batch, inner, columns), re.dtype)] * 2


_complex_qr = primitive(COMPLEX_QR, _qr_avals)


def qr(equation: compat.Equation, values: list[Any]) -> list[Value]:
    """Return Q and R with a real diagonal of R, as LAPACK's geqr2 computes them."""
    params = equation.params
    (a,) = values
    if params["pivoting"]:
        raise Unsupported(
            "E105",
            "qr with pivoting is not supported on complex numbers",
            at=place(equation),
            why="smelt has no rule that computes it with real numbers",
            fix="call qr with pivoting=False",
        )
    q_re, q_im, re, im = _complex_qr.bind(a.re, a.im, full_matrices=params["full_matrices"])
    return [Parts(q_re, q_im), Parts(re, im)]
