"""Eigenvalues of general matrices and Schur forms of complex matrices, as primitives on parts."""

from __future__ import annotations

from typing import Any

from smelt.errors import Unsupported
from smelt.frontends.jax import compat
from smelt.frontends.jax.complex_numbers.parts import Parts, primitive
from smelt.frontends.jax.source_lines import place

EIG, COMPLEX_EIG, COMPLEX_SCHUR = "eig_parts", "complex_eig_parts", "complex_schur_parts"


def _eig_avals(a: compat.Aval, *_: compat.Aval) -> list[compat.Aval]:
    """Return the types of the parts of eigenvalues, left vectors and right vectors.

    Values are ``[..., n]``, vectors ``[..., n, n]``.
    """
    values = compat.ShapedArray(a.shape[:-1], a.dtype)
    return [values] * 2 + [compat.ShapedArray(a.shape, a.dtype)] * 4


def _schur_avals(re: compat.Aval, im: compat.Aval) -> list[compat.Aval]:
    """Return the types of the parts of the triangular form and of the vectors, ``[..., n, n]``."""
    return [compat.ShapedArray(re.shape, re.dtype)] * 4


_eig_parts = primitive(EIG, _eig_avals)
_complex_eig = primitive(COMPLEX_EIG, _eig_avals)
_complex_schur = primitive(COMPLEX_SCHUR, _schur_avals)


def eig(equation: compat.Equation, operands: list[Any]) -> list[Parts]:
    """Return the eigenvalues, then the left and the right eigenvectors if they are requested."""
    (a,) = operands
    parts = _complex_eig.bind(a.re, a.im) if isinstance(a, Parts) else _eig_parts.bind(a)
    values, left_vectors, right_vectors = (Parts(*parts[i : i + 2]) for i in (0, 2, 4))
    results = [values]
    if equation.params["compute_left_eigenvectors"]:
        results.append(left_vectors)
    if equation.params["compute_right_eigenvectors"]:
        results.append(right_vectors)
    return results


def schur(equation: compat.Equation, operands: list[Any]) -> list[Parts]:
    """Return the triangular form, then the Schur vectors if the equation requests them.

    Raises Unsupported E105 if the equation requests sorted eigenvalues.
    """
    (a,) = operands
    if equation.params["sort_eig_vals"]:
        raise Unsupported(
            "E105",
            "primitive 'schur' is not supported on complex numbers",
            at=place(equation),
            why="the call sorts the eigenvalues",
            fix="do not sort the eigenvalues",
        )
    parts = _complex_schur.bind(a.re, a.im)
    form, vectors = Parts(*parts[:2]), Parts(*parts[2:])
    return [form, vectors] if equation.params["compute_schur_vectors"] else [form]
