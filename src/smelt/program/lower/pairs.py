"""Products of complex numbers stored as pairs of real ones in the last dim.

A number times a pair is a product with the real matrix ``[[re, im], [-im, re]]``. So a contraction
of complex numbers is a real contraction that also sums over the parts of the left side, with such a
matrix for each pair of the right side: four multiplications each, as in BLAS.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from smelt.operators.complex_dot import Signs
from smelt.operators.contraction_steps import COMBINE, DIAGONAL, TRANSPOSE, Step
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import COMPLEX_MATRICES
from smelt.program.lower.builder import ProgramBuilder

PLAIN: tuple[Signs, Signs] = ((1, 1), (-1, 1))
"""The signs of ``signs_of_rows`` if no operand is conjugated."""

PAIR = "\N{DOUBLE-STRUCK CAPITAL C}"
"""The label of the dim of parts; labels of equations have one character, this one is doubled."""


def on_pairs(step: Step, ranks: tuple[int, ...]) -> Step:
    """Return ``step`` of a contraction for operands with one more dim: the parts, at the end.

    ``ranks`` are the ranks of its operands without that dim.
    """
    labels = (*step.labels, PAIR * 2)
    if step.op == DIAGONAL:
        return replace(step, labels=labels, axes=(*step.axes, len(step.labels)))
    if step.op == TRANSPOSE:
        return replace(step, labels=labels, axes=(*step.axes, ranks[0]))
    if step.op == COMBINE:
        dims = tuple((*side, len(step.labels)) for side in step.dims)
        return replace(step, labels=labels, dims=dims)
    return replace(step, labels=labels)


def real_dot(
    cx: ProgramBuilder, lhs: int, rhs: int, dims: DotDims, signs: tuple[Signs, Signs] = PLAIN
) -> tuple[int, DotDims]:
    """Return the matrices of ``rhs``, and the dims of the real product of ``lhs`` with them.

    ``dims`` number the dims without the last one, of real and imaginary parts. ``signs`` is what
    ``signs_of_rows`` returns. The dims of the matrices are in the order of a matrix product: batch,
    contracting in the order of ``lhs``, rows of the matrices, free, columns.
    """
    pairs = sorted(zip(dims.lhs_contracting, dims.rhs_contracting, strict=True))
    shape, batch = cx.shape(rhs), len(dims.lhs_batch)
    perm = (*dims.rhs_batch, *(dim for _, dim in pairs), *dims.rhs_free(len(shape) - 1))
    axis, sizes = batch + len(pairs), [shape[dim] for dim in perm]
    attributes: dict[str, Any] = {"perm": perm, "axis": axis, "signs": (*signs[0], *signs[1])}
    result = (*sizes[:axis], 2, *sizes[axis:], 2)
    matrices = cx.emit_new(COMPLEX_MATRICES, (rhs,), result, **attributes)
    contracting = (*(dim for dim, _ in pairs), len(cx.shape(lhs)) - 1)
    rows = tuple(range(batch, axis + 1))
    return matrices, DotDims(contracting, rows, dims.lhs_batch, tuple(range(batch)))


def times_i(cx: ProgramBuilder, slot: int) -> int:
    """Return each pair times i: the negated imaginary part, then the real part."""
    shape = cx.shape(slot)
    backwards: dict[str, Any] = {
        "starts": (1,),
        "ends": (-(2**31),),
        "axes": (len(shape) - 1,),
        "steps": (-1,),
    }
    swapped = cx.emit_new("Slice", (slot,), shape, **backwards)
    signs = cx.constant(np.array((-1, 1), cx.dtype(slot).numpy()), "signs")
    return cx.emit_new("Mul", (swapped, signs), shape)


def product(cx: ProgramBuilder, a: int, b: int) -> tuple[int, int]:
    """Return two slots whose sum is the elementwise product of ``a`` and ``b``, which broadcast.

    They are ``re(a) * b`` and ``im(a) * (i * b)``.
    """
    return _times_component(cx, a, 0, b), _times_component(cx, a, 1, times_i(cx, b))


def _times_component(cx: ProgramBuilder, a: int, component: int, b: int) -> int:
    """Return ``b`` times the real (``component`` 0) or imaginary (1) parts of ``a``."""
    *shape, _ = cx.shape(a)
    axis = len(shape)
    bounds: dict[str, Any] = {
        "starts": (component,),
        "ends": (component + 1,),
        "axes": (axis,),
        "steps": (1,),
    }
    factor = cx.emit_new("Slice", (a,), (*shape, 1), **bounds)
    out = [y if x == 1 else x for x, y in zip(cx.shape(factor), cx.shape(b), strict=True)]
    return cx.emit_new("Mul", (factor, b), out)
