"""Eigenvalues of Hermitian matrices and singular values of complex ones, by real matrices.

``a = x + iy`` acts on the parts of vectors as the symmetric ``[[x, -y], [y, x]]``, which has each
eigenvalue twice. Of its 2n vectors, n are chosen that are orthonormal as complex ones.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from smelt.errors import Unsupported
from smelt.frontends.jax import compat
from smelt.frontends.jax.complex_numbers.factors import (
    adjoint,
    identity,
    line,
    product,
    rows_and_columns,
    squared,
    where,
)
from smelt.frontends.jax.complex_numbers.parts import Array, Parts, Value, real
from smelt.frontends.jax.source_lines import place


def eigh(equation: compat.Equation, values: list[Any]) -> list[Value]:
    """Vectors, then values, of the triangle that is asked for."""
    _check_whole(equation)
    (a,) = values
    found = hermitian(a, equation.params["lower"])
    return [found[0], found[1]]


def hermitian(a: Parts, lower: bool) -> tuple[Parts, Array]:
    """Orthonormal vectors in columns, and eigenvalues that grow."""
    r, c = rows_and_columns(a)
    given, other = (r >= c, adjoint(a)) if lower else (r <= c, adjoint(a))
    a = where(given, a, other)
    a = Parts(a.re, jnp.where(r == c, 0, a.im))
    top = jnp.concatenate([a.re, -a.im], -1)
    whole = jnp.concatenate([top, jnp.concatenate([a.im, a.re], -1)], -2)
    vectors, twice = lax.linalg.eigh(whole, symmetrize_input=False)
    size = a.re.shape[-1]
    candidates = Parts(vectors[..., :size, :], vectors[..., size:, :])
    return orthonormal(candidates, size), twice[..., ::2]


def orthonormal(candidates: Parts, count: Any) -> Parts:
    """The first ``count`` columns that are not combinations of those before, made orthonormal.

    Columns of norm 1 whose squares cover the space leave, as long as one is missing, a candidate
    of which a part of at least 1 / sqrt(rows) is new, so half of that tells new ones.
    """
    rows, columns = candidates.re.shape[-2:]
    least = 0.25 / jnp.maximum(jnp.asarray(rows, candidates.re.dtype), 1)
    shape = (*candidates.re.shape[:-2], rows, count)
    places = jnp.arange(count)

    def step(k: Array, state: tuple[Any, ...]) -> tuple[Any, ...]:
        (re, im), found = state
        chosen, new = Parts(re, im), line(candidates, k, -1)
        for _ in range(2):  # once more, for the rounding of the first
            new = new - product(chosen, product(adjoint(chosen), new))
        square = squared(new).sum(-2, keepdims=True)
        accepted = (square > least) & (found < count)
        unit = new.scaled(1 / jnp.sqrt(jnp.where(accepted, square, 1)))
        chosen = where(accepted & (places == found), unit, chosen)
        return (chosen.re, chosen.im), found + accepted

    zeros = jnp.zeros(shape, candidates.re.dtype)
    if isinstance(columns, int) and columns == 0:
        return Parts(zeros, zeros)
    found = jnp.zeros((*shape[:-2], 1, 1), jnp.int32)
    (re, im), _ = lax.fori_loop(0, columns, step, ((zeros, zeros), found))
    return Parts(re, im)


def svd(equation: compat.Equation, values: list[Any]) -> list[Value]:
    """By the eigenvalues of ``[[0, a], [a^H, 0]]``: the singular values, and their negatives."""
    _check_whole(equation)
    (a,) = values
    params = equation.params
    *_, rows, columns = a.re.shape
    count = min(rows, columns)
    zeros = [real(jnp.zeros((*a.re.shape[:-2], n, n), a.re.dtype)) for n in (rows, columns)]
    whole = _beside(_beside(zeros[0], a, -1), _beside(adjoint(a), zeros[1], -1), -2)
    vectors, found = hermitian(whole, True)
    largest = jnp.flip(found, -1)[..., :count]
    sizes = jnp.maximum(largest, 0)
    if not params["compute_uv"]:
        return [sizes]
    noise = 8 * jnp.finfo(sizes.dtype).eps * max(rows, columns)
    kept = sizes > noise * sizes[..., :1]  # of the others only the space is known
    vectors = Parts(jnp.flip(vectors.re, -1), jnp.flip(vectors.im, -1))
    left, right = (
        _completed(vectors, kept, slice(*ends), wanted if params["full_matrices"] else count)
        for ends, wanted in (((0, rows), rows), ((rows, rows + columns), columns))
    )
    return [sizes, left, adjoint(right)]


def _completed(vectors: Parts, kept: Array, part: slice, count: Any) -> Parts:
    """Half of each vector that is kept, and unit vectors for what these leave."""
    number = kept.shape[-1]
    half = Parts(*(each[..., part, :number] for each in (vectors.re, vectors.im)))
    half = where(kept[..., None, :], half, real(jnp.zeros_like(half.re)))
    norms = squared(half).sum(-2, keepdims=True)
    half = half.scaled(1 / jnp.sqrt(jnp.where(norms > 0, norms, 1)))
    return orthonormal(_beside(half, identity(half, half.re.shape[-2]), -1), count)


def _beside(a: Parts, b: Parts, axis: int) -> Parts:
    return Parts(*(jnp.concatenate(each, axis) for each in ((a.re, b.re), (a.im, b.im))))


def _check_whole(equation: compat.Equation) -> None:
    """Raise Unsupported E105 where a subset of the values is asked for."""
    if equation.params["subset_by_index"] is not None:
        raise Unsupported(
            "E105",
            f"{equation.primitive.name} of a subset is not supported on complex numbers",
            at=place(equation),
            why="all values are computed",
            fix="leave subset_by_index out, and slice the result",
        )
