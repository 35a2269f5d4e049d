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
from smelt.operators.contraction_steps import (
    COMBINE,
    DIAGONAL,
    DOT,
    TRANSPOSE,
    Step,
)
from smelt.program.lower.builder import ProgramBuilder

PAIR = "\N{DOUBLE-STRUCK CAPITAL C}"
"""The label of the dim of parts; labels of equations have one character, this one is doubled."""

PLAIN: tuple[Signs, Signs] = ((1, 1), (-1, 1))
"""The signs of ``signs_of_rows`` if no operand is conjugated."""


def on_pairs(step: Step, ranks: tuple[int, ...]) -> Step:
    """Return ``step`` of a contraction for operands with one more dim: the parts, at the end.

    ``ranks`` are the ranks of its operands without that dim.
    """
    labels = (*step.labels, PAIR * 2)
    if step.op == DIAGONAL:
        return replace(step, labels=labels, axes=(*step.axes, len(step.labels)))
    if step.op == TRANSPOSE:
        return replace(step, labels=labels, axes=(*step.axes, ranks[0]))
    if step.op == DOT:
        lhs_dims, rhs_dims, *batch = step.dims
        dims = ((*lhs_dims, ranks[0]), (*rhs_dims, ranks[1]), *batch)
        return replace(step, labels=labels, dims=dims)
    if step.op == COMBINE:
        dims = tuple((*side, len(step.labels)) for side in step.dims)
        return replace(step, labels=labels, dims=dims)
    return replace(step, labels=labels)


def matrices(cx: ProgramBuilder, slot: int, signs: tuple[Signs, Signs] = PLAIN) -> int:
    """Return pairs [..., 2] as matrices [..., 2, 2]: each pair, and i times the pair.

    ``signs`` are those of ``signs_of_rows``.
    """
    *shape, _ = cx.shape(slot)
    parts = (_signed(cx, slot, signs[0]), _signed(cx, _swapped(cx, slot), signs[1]))
    rows = [cx.emit_new("Reshape", (pair,), (*shape, 1, 2)) for pair in parts]
    return cx.emit_new("Concat", rows, (*shape, 2, 2), axis=len(shape))


def times_i(cx: ProgramBuilder, slot: int) -> int:
    """Return each pair times i: the negated imaginary part, then the real part."""
    return _signed(cx, _swapped(cx, slot), PLAIN[1])


def _swapped(cx: ProgramBuilder, slot: int) -> int:
    """Return each pair as the imaginary part, then the real part."""
    shape = cx.shape(slot)
    backwards: dict[str, Any] = {
        "starts": (1,),
        "ends": (-(2**31),),
        "axes": (len(shape) - 1,),
        "steps": (-1,),
    }
    return cx.emit_new("Slice", (slot,), shape, **backwards)


def _signed(cx: ProgramBuilder, slot: int, signs: Signs) -> int:
    """Return the two parts of each pair times ``signs``."""
    if signs == (1, 1):
        return slot
    factors = cx.constant(np.array(signs, cx.dtype(slot).numpy()), "signs")
    return cx.emit_new("Mul", (slot, factors), cx.shape(slot))


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
