"""Chains of Casts that ONNX Runtime merges, although the first Cast loses information.

When it opens a model, even with optimizations off, it removes the middle of ``x -> wide -> y`` if y
is an integer of fewer bits than the middle. For floats that is another function: int64 keeps the
low bits of a number beyond int32, and 0.9999 is 1 as a float16. Seen in 1.31 and 1.32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.declare import Attributes
from smelt.operators.inputs import present

T = ir.DataType

KEPT_BY = {
    T.DOUBLE: (T.DOUBLE,),
    T.FLOAT: (T.FLOAT, T.DOUBLE),
    T.FLOAT16: (T.FLOAT16, T.FLOAT, T.DOUBLE),
    T.BFLOAT16: (T.BFLOAT16, T.FLOAT, T.DOUBLE),
}
"""For each float type, the types that represent all of its numbers."""

CLIPPED = {
    T.FLOAT16: T.FLOAT,
    T.BFLOAT16: T.FLOAT,
    T.FLOAT: T.FLOAT,
    T.INT16: T.INT32,
    T.UINT16: T.INT32,
    T.INT32: T.INT32,
    T.UINT32: T.UINT32,
    T.INT64: T.INT64,
    T.UINT64: T.UINT64,
}
"""Types of the value between two Casts, and the type in which a Clip of it runs: Clip has no 16-bit
kernels."""


def with_clip(
    b: Builder, inputs: Sequence[ir.Value | None], attributes: Attributes
) -> tuple[ir.Value, ...]:
    """Build a Clip without bounds before the Cast: it changes nothing, and prevents the merge."""
    (x,) = present(inputs)
    assert x.dtype is not None
    wide = CLIPPED[x.dtype]
    clip_operand = b.cast(x, wide)
    options: dict[str, Any] = dict(attributes)
    return (b.op("Cast", b.op("Clip", clip_operand), **options),)


def is_merged(node: ir.Node) -> bool:
    """True if ONNX Runtime merges the Cast ``node`` with an earlier one."""
    end = _target(node)
    if end is None or not end.is_integer():
        return False
    value, first = node.inputs[0], node
    while value is not None and (middle := _target(value.producer())) is not None:
        first = value.producer() or first
        value = first.inputs[0]
        narrowed = middle.bitwidth > end.bitwidth
        if narrowed and value is not None and _may_lose(_dtype(value), middle):
            return True
    return False


def _may_lose(source: ir.DataType | None, target: ir.DataType) -> bool:
    """True if ``source`` is, or may be, a float type with numbers that ``target`` does not
    represent."""
    return source is None or (source in KEPT_BY and target not in KEPT_BY[source])


def _dtype(value: ir.Value) -> ir.DataType | None:
    """Return the element type of ``value``, from its Cast if inference has not set it."""
    return value.dtype or _target(value.producer())


def _target(node: ir.Node | None) -> ir.DataType | None:
    """Return the type that ``node`` casts to; None if it is no Cast."""
    if node is None or node.domain or node.op_type != "Cast" or "to" not in node.attributes:
        return None
    to = node.attributes["to"]
    return None if to.is_ref() else T(to.as_int())
