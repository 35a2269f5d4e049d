"""Rows for BitwiseAnd, BitwiseOr and BitwiseXor, computed on 0 and 1 along an axis of bits.

Core ML has no bitwise operations.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.mlpackage.program import Element
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.writer import Refused, Val, broadcast

BITS = {ir.DataType.INT8: 7, ir.DataType.INT16: 15}
"""The number of bits of a signed type without the sign bit; 31 for types that are not listed."""
OF_BITS = {"BitwiseAnd": "mul", "BitwiseOr": "maximum", "BitwiseXor": "not_equal"}
"""The MIL operation that computes each operator on 0 and 1."""
MOST_DIMS = 4
"""Core ML has five dims, and the bits need one of them."""


@writes(*OF_BITS)
def bitwise(c: Call) -> None:
    """Write ``sum_k f(x_k, y_k) * 2**k``, where x_k is bit k of x and f the operator on bits.

    For signed types of n bits without the sign, ``f(x < 0, y < 0) * 2**n`` is subtracted, as in
    two's complement. Numbers that are known to have no sign have the bits of their bounds.
    """
    x, y = c.x(0), c.x(1)
    dims = broadcast(x.dims, y.dims)
    if len(dims) > MOST_DIMS:
        raise Refused(f"it has more than {MOST_DIMS} dims, and its bits need one more")
    known = [bits for bits in map(c.most_bits, (0, 1)) if bits is not None]
    is_signed = len(known) < 2
    count = BITS.get(c.dtype() or ir.DataType.INT64, 31) if is_signed else min(31, max(1, *known))
    powers = c.w.constant((1 << np.arange(count)).astype(np.int32))
    combined = _combined(c, *(_bits(c, each, powers) for each in (x, y)))
    terms = c.op("mul", combined, powers)
    total = c.reduce("reduce_sum", terms, [len(dims)], keep=False)
    if is_signed:
        total = _signed(c, x, y, total, -(1 << count))
    c.done(total)


def _bits(c: Call, x: Val, powers: Val) -> Val:
    """Return bits of ``x`` along a new last axis, as int32 0 and 1: ``floor(x / 2**k) mod 2``."""
    column = c.expand(x, [x.rank])
    return c.op("mod", c.op("floor_div", column, powers), 2)


def _combined(c: Call, x: Val, y: Val) -> Val:
    """Return the node's operator applied to two tensors of 0 and 1."""
    name = OF_BITS[c.node.op_type]
    if name != "not_equal":
        return c.op(name, x, y)
    return c.cast(c.op(name, x, y, element=Element.BOOL), Element.INT32)


def _signed(c: Call, x: Val, y: Val, total: Val, sign: int) -> Val:
    """Return ``total`` plus ``sign`` where the operator applied to the signs is 1."""
    signs = [c.cast(c.op("less", each, 0, element=Element.BOOL), Element.INT32) for each in (x, y)]
    return c.op("add", total, c.op("mul", _combined(c, *signs), sign))
