"""Drop redundant Casts, and turn CastLike into Cast.

    before   x: float16 ─> Cast(float) ─> Cast(double) ─> y      after   x ─> Cast(double) ─> y
    before   CastLike(x, z: float) ─> y                          after   Cast(x, float) ─> y
    before   x: float ─> Cast(float) ─> y                        after   x ─> y

Needs    (1) a middle type that holds every value of the first type exactly, in range *and* in
         mantissa: int32 passes through double, not through float.
Keeps    (1) casts that lose information (float to int32 to float), 8-bit floats, strings, and
         floats cast to integers: runtimes differ on NaN and large numbers.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import EXACT, rule_pass

FLOATS = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.FLOAT, ir.DataType.DOUBLE)
INTEGERS = (
    *(ir.DataType.INT8, ir.DataType.INT16, ir.DataType.INT32, ir.DataType.INT64),
    *(ir.DataType.UINT8, ir.DataType.UINT16, ir.DataType.UINT32, ir.DataType.UINT64),
)


@rule(op("Cast", op("Cast", var("x"), name="middle", shared=True)))
def cast_of_cast(m: Match, b: Builder) -> Replacement:
    """Replace two Casts by one if the middle type loses nothing."""
    x, middle, end = m["x"], m["middle"].dtype, m.root.outputs[0].dtype
    if x.dtype is None or middle is None or end is None:
        return None
    if not holds_every_value(middle, x.dtype):  # needs 1
        return Miss(f"{middle.name.lower()} does not hold every value of {x.dtype.name.lower()}")
    if end not in (*FLOATS, *INTEGERS, ir.DataType.BOOL):
        return Miss(f"casts to {end.name.lower()} depend on the source type")
    if x.dtype in FLOATS and end in INTEGERS:  # keeps 1
        return Miss("runtimes cast NaN and large numbers to different integers")
    return x if end == x.dtype else b.op("Cast", x, to=int(end))


@rule(op("Cast", var("x")))
def cast_to_its_own_type(m: Match, b: Builder) -> Replacement:
    """Drop a Cast to the type that x already has."""
    to = m.root.attributes.get("to")
    return m["x"] if to is not None and m["x"].dtype == to.as_int() else None


@rule(op("CastLike", var("x"), var("like")), same_shape=True)
def cast_like(m: Match, b: Builder) -> Replacement:
    """Replace CastLike by a Cast to the known type of its second operand."""
    to = m["like"].dtype
    attributes = m.root.attributes
    if to is None or "saturate" in attributes or "round_mode" in attributes:
        return None
    return b.op("Cast", m["x"], to=int(to))


def holds_every_value(wide: ir.DataType, narrow: ir.DataType) -> bool:
    """True if every value of ``narrow`` is a value of ``wide``."""
    if wide == narrow:
        return narrow in (*FLOATS, *INTEGERS, ir.DataType.BOOL)
    if narrow == ir.DataType.BOOL:
        return wide in (*FLOATS, *INTEGERS)
    if narrow in FLOATS:
        return wide in FLOATS and _float_holds(wide, narrow)
    if narrow in INTEGERS:
        limits = np.iinfo(narrow.numpy())
        if wide in INTEGERS:
            outer = np.iinfo(wide.numpy())
            return bool(outer.min <= limits.min and limits.max <= outer.max)
        if wide in FLOATS:
            bits = limits.bits - (1 if limits.min < 0 else 0)
            info = ml_dtypes.finfo(wide.numpy())
            return bool(info.nmant + 1 >= bits and float(info.max) >= float(limits.max))
    return False


def _float_holds(wide: ir.DataType, narrow: ir.DataType) -> bool:
    """True if ``wide`` has the mantissa bits and the range of ``narrow``, subnormal numbers
    included."""
    outer, inner = ml_dtypes.finfo(wide.numpy()), ml_dtypes.finfo(narrow.numpy())
    return bool(
        outer.nmant >= inner.nmant
        and float(outer.max) >= float(inner.max)
        and float(outer.smallest_subnormal) <= float(inner.smallest_subnormal)
    )


cast_optimization = rule_pass(
    "cast_optimization",
    __doc__,
    [cast_of_cast, cast_to_its_own_type, cast_like],
    exactness=EXACT,
    source="Core ML MIL: common::cast_optimization",
)
