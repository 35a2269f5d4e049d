"""Eigenvalues of general real matrices: complex results, by a primitive of their parts."""

from __future__ import annotations

from typing import Any

from smelt.errors import Unsupported
from smelt.frontends.jax import compat
from smelt.frontends.jax.complex_numbers.parts import Parts
from smelt.frontends.jax.places import place

NAME = "eig_parts"
_eig_parts = compat.Primitive(NAME)
_eig_parts.multiple_results = True


def _avals(a: compat.Aval) -> list[compat.Aval]:
    values = compat.ShapedArray(a.shape[:-1], a.dtype)
    return [values] * 2 + [compat.ShapedArray(a.shape, a.dtype)] * 4


_eig_parts.def_abstract_eval(_avals)


def eig(equation: compat.Equation, operands: list[Any]) -> list[Parts]:
    """The values, then left and right vectors if asked for.

    Raises Unsupported E105 for complex matrices.
    """
    (a,) = operands
    if isinstance(a, Parts):
        raise Unsupported(
            "E105",
            "primitive 'eig' is not supported on complex numbers",
            at=place(equation),
            why="its operator takes real matrices",
            fix="use eigh if the matrix is Hermitian, on its real form [[re, -im], [im, re]]",
        )
    found = _eig_parts.bind(a)
    values, left, right = (Parts(*found[i : i + 2]) for i in (0, 2, 4))
    params = equation.params
    return [
        values,
        *([left] if params["compute_left_eigenvectors"] else []),
        *([right] if params["compute_right_eigenvectors"] else []),
    ]
