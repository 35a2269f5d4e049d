"""Moves of element types: halves, quantized numbers, integers that wrap around."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
from random_graphs.draft import FLOAT, Draft, Move, NoMove, dims, static

HALF, BRAIN = ir.DataType.FLOAT16, ir.DataType.BFLOAT16
NARROW = (ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT32, ir.DataType.INT64)


def _cast(d: Draft, x: ir.Value, dtype: ir.DataType) -> ir.Value:
    return d.op("Cast", x, to=int(dtype))


def half(d: Draft) -> None:
    """Operators in float16 whose results need no rounding.

    ONNX Runtime computes others in float32 and leaves out casts between: whether a sum of halves is
    rounded hangs on its neighbours there, so nothing could be told of it.
    """
    x = _cast(d, d.float(), HALF)
    for _ in range(d.rng.randint(1, 3)):
        kind = d.rng.choice(["Neg", "Abs", "Max", "Min", "Identity"])
        bounds = [d.const(d.rng.choice([2.0, 0.5, -1.0]), HALF)] if kind in ("Max", "Min") else []
        x = d.op(kind, x, *bounds)


def rounded(d: Draft) -> None:
    """To a narrow float and back, once or twice."""
    x = d.float()
    for _ in range(d.rng.choice([1, 2])):
        x = _cast(d, _cast(d, x, d.rng.choice([HALF, BRAIN])), FLOAT)


def quantized(d: Draft) -> None:
    """QuantizeLinear and DequantizeLinear, around an operator or next to each other."""
    x = d.float()
    dtype = d.rng.choice([ir.DataType.UINT8, ir.DataType.INT8])
    scale, zero = _scales(d, x, dtype)
    axis = {} if not dims(scale) else {"axis": len(dims(x)) - 1}
    y = d.op("QuantizeLinear", x, scale, zero, **axis)
    if d.chance(0.3) and len(dims(y)) > 1:
        y = d.op("Transpose", y, perm=list(range(len(dims(y)))))
    y = d.op("DequantizeLinear", y, scale, zero, **axis)
    kind = d.rng.choice(["Relu", "Neg", "Add", "QuantizeLinear"])
    if kind == "Add":
        y = d.op("Add", y, x)
    elif kind != "QuantizeLinear":
        y = d.op(kind, y)
    if d.chance(0.6):
        d.op(
            "DequantizeLinear", d.op("QuantizeLinear", y, scale, zero, **axis), scale, zero, **axis
        )


def _scales(d: Draft, x: ir.Value, dtype: ir.DataType) -> tuple[ir.Value, ir.Value | None]:
    zero: object = d.rng.choice([0, 3])
    scale: object = d.rng.choice([0.1, 0.5, 0.02])
    if d.chance(0.3) and dims(x) and isinstance(dims(x)[-1], int):
        size = static(x, -1)
        scale = np.full(size, scale) * np.arange(1, size + 1)
        zero = np.full(size, zero)
    return d.const(scale), d.const(zero, dtype)


def wrapping(d: Draft) -> None:
    """Integers that leave their range, twice; what they wrap to is no matter of rounding."""
    dtype = d.rng.choice(NARROW)
    # Not what was a float: ONNX Runtime leaves out the middle of float -> int64 -> int32.
    x = _cast(d, d.pick(lambda v: v.dtype == ir.DataType.INT64 and v.producer() is None), dtype)
    info = np.iinfo(dtype.numpy())
    for _ in range(d.rng.choice([1, 2, 3])):
        number = d.rng.choice([info.max, info.min, info.max // 2 + 1, 1, 0, 3])
        x = d.op(d.rng.choice(["Add", "Sub", "Mul"]), x, d.const(number, dtype))
    _cast(d, x, ir.DataType.INT64)


def shifted(d: Draft) -> None:
    """Bits moved and masked, from opset 18 on."""
    x = _cast(d, d.pick(lambda v: v.dtype == ir.DataType.INT64), ir.DataType.UINT32)
    direction = d.rng.choice(["LEFT", "RIGHT"])
    x = d.op("BitShift", x, d.const(d.rng.choice([0, 1, 4]), x.dtype), direction=direction)
    if d.opset >= 18:
        kind = d.rng.choice(["BitwiseAnd", "BitwiseOr", "BitwiseXor"])
        x = d.op(kind, x, d.const(d.rng.choice([0, 255, 2**32 - 1]), x.dtype))
    _cast(d, x, ir.DataType.INT64)


def compared(d: Draft) -> None:
    """A half and a constant decide."""
    x = _cast(d, d.float(), HALF)
    if x.dtype is None:
        raise NoMove
    d.op("Where", d.op("Greater", x, d.const(0.25, HALF)), d.const(1.0), d.const(-0.0))


MOVES: list[Move] = [half, rounded, quantized, quantized, wrapping, wrapping, shifted, compared]
