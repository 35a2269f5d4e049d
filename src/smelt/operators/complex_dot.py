"""Complex operands of ``smelt.DotGeneral``: pairs of real and imaginary parts in an additional last
dim.

A number times a pair is a product with the real matrix ``[[re, im], [-im, re]]``, so a complex
contraction is a real one that also sums over the parts of the left operand, with such a matrix for
each pair of the right operand. Conjugates change the signs of the matrix alone: that of the right
operand negates ``im``, that of the left operand the second row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.complex_pairs import COMPLEX
from smelt.operators.declare import Arguments, Attributes, ints_of
from smelt.operators.semiring import semiring_on

Signs: TypeAlias = tuple[int, int]
REAL: dict[str, int] = {"pairs": 0, "lhs_conj": 0, "rhs_conj": 0}
"""The attributes of a product of real operands."""


def check(operands: Sequence[ir.Value], attributes: Attributes) -> None:
    """Raise ValueError unless the operands of a product with ``pairs`` are pairs of floats, or if a
    real operand should be conjugated."""
    if not attributes["pairs"]:
        if attributes["lhs_conj"] or attributes["rhs_conj"]:
            raise ValueError("only operands with pairs=1 can be conjugated")
        return
    semiring_on(attributes["semiring"], np.dtype(np.complex64))
    preferred = attributes["dtype"]
    output = [ir.DataType(preferred)] if isinstance(preferred, int) else []
    for dtype in [*(value.dtype for value in operands), *output]:
        if dtype is not None and dtype not in COMPLEX:
            raise ValueError(f"complex numbers are pairs of float or double, not of {dtype}")
    for value in operands:
        if value.shape is None:
            continue
        if not value.shape or (isinstance(value.shape[-1], int) and value.shape[-1] != 2):
            raise ValueError("the last dim of complex operands has the two parts of each number")


def complex_arrays(operands: Arguments, attributes: Attributes) -> list[np.ndarray]:
    """Return arrays of pairs as complex numbers, conjugated as ``attributes`` say."""
    found = []
    for pairs, name in zip(operands, ("lhs_conj", "rhs_conj"), strict=True):
        assert pairs is not None
        array = np.ascontiguousarray(pairs).view(np.result_type(pairs.dtype, np.complex64))[..., 0]
        found.append(array.conj() if attributes[name] else array)
    return found


def signs_of_rows(attributes: Attributes) -> tuple[Signs, Signs]:
    """Return the signs of ``[re, im]`` and of ``[im, re]`` in the two rows of the matrix."""
    left = -1 if attributes["lhs_conj"] else 1
    right = -1 if attributes["rhs_conj"] else 1
    return (1, right), (-left * right, left)


def matrices_of(
    pairs: np.ndarray,
    perm: Sequence[int],
    axis: int,
    signs: Sequence[int],
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Return the matrices of ``pairs``: dims in the order ``perm``, rows at ``axis``, columns last.

    ``signs`` are those of the four elements, row by row; ``out`` is an array for the result.
    """
    ordered = pairs.transpose(*perm, pairs.ndim - 1)
    factors = np.array(signs, pairs.dtype).reshape(2, 2)
    signed = [ordered * factors[0], ordered[..., ::-1] * factors[1]]
    return np.stack(signed, axis, out)


def real_dims(attributes: Attributes, lhs_rank: int, rhs_rank: int) -> dict[str, tuple[int, ...]]:
    """Return the dims of the real product of pairs with matrices; ranks are those of the pairs."""
    lhs, rhs = ints_of(attributes, "lhs_contracting"), ints_of(attributes, "rhs_contracting")
    return {
        "lhs_contracting": (*lhs, lhs_rank - 1),
        "rhs_contracting": (*rhs, rhs_rank - 1),
        "lhs_batch": tuple(ints_of(attributes, "lhs_batch")),
        "rhs_batch": tuple(ints_of(attributes, "rhs_batch")),
    }


def real_product(
    b: Builder, lhs: ir.Value, rhs: ir.Value, attributes: Attributes
) -> tuple[ir.Value, dict[str, Any]]:
    """Build the matrices ``[..., 2, 2]`` of ``rhs``; return them with the attributes of the real
    product of ``lhs`` with them.

    The ranks of both operands must be known.
    """
    assert lhs.shape is not None
    assert rhs.shape is not None
    assert rhs.dtype is not None
    rank, dtype = len(rhs.shape), rhs.dtype.numpy()
    ends, steps = b.const_i64([-(2**31)]), b.const_i64([-1])
    swapped = b.op("Slice", rhs, b.const_i64([1]), ends, b.const_i64([rank - 1]), steps)
    rows = [
        x if signs == (1, 1) else b.op("Mul", x, b.constant(np.array(signs, dtype)))
        for x, signs in zip((rhs, swapped), signs_of_rows(attributes), strict=True)
    ]
    axis = b.const_i64([rank - 1])
    matrices = b.op("Concat", *(b.op("Unsqueeze", row, axis) for row in rows), axis=rank - 1)
    return matrices, {**attributes, **real_dims(attributes, len(lhs.shape), rank), **REAL}
