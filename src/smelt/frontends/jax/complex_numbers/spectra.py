"""Eigenvalues of Hermitian matrices and singular values, as primitives on parts."""

from __future__ import annotations

from typing import Any

from smelt.errors import Unsupported
from smelt.frontends.jax import compat
from smelt.frontends.jax.complex_numbers.parts import Parts, Value, primitive
from smelt.frontends.jax.source_lines import place

COMPLEX_EIGH, COMPLEX_SVD = "complex_eigh_parts", "complex_svd_parts"
COMPLEX_VALUES = "complex_singular_values_parts"


def _eigh_avals(re: compat.Aval, im: compat.Aval, *, lower: bool) -> list[compat.Aval]:
    """Return the types of the vectors' parts ``[..., n, n]`` and of the values ``[..., n]``."""
    values = compat.ShapedArray(re.shape[:-1], re.dtype)
    return [compat.ShapedArray(re.shape, re.dtype)] * 2 + [values]


def _svd_avals(re: compat.Aval, im: compat.Aval, *, full_matrices: bool) -> list[compat.Aval]:
    """Return the types of the singular values, and of the parts of U and of the adjoint of V."""
    *batch, rows, columns = re.shape
    count = min(rows, columns)
    left_vectors, right_vectors = (rows, columns) if full_matrices else (count, count)
    left_shape = (*batch, rows, left_vectors)
    right_shape = (*batch, right_vectors, columns)
    shapes = [(*batch, count), left_shape, left_shape, right_shape, right_shape]
    return [compat.ShapedArray(shape, re.dtype) for shape in shapes]


def _values_avals(re: compat.Aval, im: compat.Aval) -> list[compat.Aval]:
    """Return the type of the singular values."""
    return _svd_avals(re, im, full_matrices=False)[:1]


_complex_eigh = primitive(COMPLEX_EIGH, _eigh_avals)
_complex_svd = primitive(COMPLEX_SVD, _svd_avals)
_complex_values = primitive(COMPLEX_VALUES, _values_avals)


def eigh(equation: compat.Equation, values: list[Any]) -> list[Value]:
    """Return eigenvectors, then eigenvalues; reads only the triangle that ``lower`` selects."""
    _check_no_subset(equation)
    (a,) = values
    re, im, eigenvalues = _complex_eigh.bind(a.re, a.im, lower=equation.params["lower"])
    return [Parts(re, im), eigenvalues]


def svd(equation: compat.Equation, values: list[Any]) -> list[Value]:
    """Return the singular values, then U and the adjoint of V if they are requested."""
    _check_no_subset(equation)
    (a,) = values
    params = equation.params
    if not params["compute_uv"]:
        return list(_complex_values.bind(a.re, a.im))
    sizes, *parts = _complex_svd.bind(a.re, a.im, full_matrices=params["full_matrices"])
    return [sizes, Parts(*parts[:2]), Parts(*parts[2:])]


def _check_no_subset(equation: compat.Equation) -> None:
    """Raise Unsupported E105 if the equation requests a subset of the values."""
    if equation.params["subset_by_index"] is not None:
        raise Unsupported(
            "E105",
            f"{equation.primitive.name} of a subset is not supported on complex numbers",
            at=place(equation),
            why="the operator computes all values",
            fix="call it without subset_by_index, and slice the result",
        )
