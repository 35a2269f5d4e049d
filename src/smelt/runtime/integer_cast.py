"""Cast integers to integers as ONNX defines it, for every pair of widths."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir


def cast_integers(source: np.ndarray, target: ir.DataType) -> np.ndarray:
    """Return ``source`` cast to ``target``: the low bits, read in two's complement.

    Both types are integers of 2 to 64 bits.
    """
    bits = target.bitwidth
    if bits >= 8 and source.dtype.kind in "iu":
        return source.astype(target.numpy())
    widened = source.astype(np.int64)
    if bits < 64:
        widened &= (1 << bits) - 1
    if bits < 64 and target.is_signed():
        widened -= (widened >> (bits - 1)) << bits
    return widened.astype(target.numpy())


def is_integer_cast(node: ir.Node, source: np.ndarray) -> bool:
    """True for a Cast or CastLike of integers to integers."""
    if node.op_type not in ("Cast", "CastLike") or node.outputs[0].dtype is None:
        return False
    return is_integer(source.dtype) and node.outputs[0].dtype.is_integer()


def is_integer(dtype: np.dtype) -> bool:
    """True for NumPy integers and for the narrow integers of ml_dtypes."""
    if dtype.kind in "iu":
        return True
    try:
        return ir.DataType.from_numpy(dtype).is_integer()
    except TypeError:
        return False
