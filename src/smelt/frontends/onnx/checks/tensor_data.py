"""Check the data of a tensor: in the one field of its type, as many elements as the dims need."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import onnx
import onnx_ir as ir

from smelt.errors import InvalidModel

Raw: TypeAlias = "bytes | memoryview"

_FIELD = {
    ir.DataType.FLOAT: "float_data",
    ir.DataType.COMPLEX64: "float_data",
    ir.DataType.DOUBLE: "double_data",
    ir.DataType.COMPLEX128: "double_data",
    ir.DataType.INT64: "int64_data",
    ir.DataType.UINT64: "uint64_data",
    ir.DataType.UINT32: "uint64_data",
    ir.DataType.STRING: "string_data",
}
"""The typed field of each element type; all others use int32_data."""

_TYPED = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
FIELDS = (*_TYPED, "raw_data")
"""Every field that can hold the data of a tensor."""

_FIX = "copy the file again, or export it again with another release of the exporter"


def check_data(
    tensor: onnx.TensorProto, dtype: ir.DataType, count: int, at: str, raw: Raw | None
) -> None:
    """Raise InvalidModel E311 unless ``tensor`` holds ``count`` elements of ``dtype``.

    ``raw`` is its raw data, None if it has none.
    """
    present = [name for name in _TYPED if holds_data(tensor, name)]
    present += ["raw_data"] if raw is not None else []
    field = _FIELD.get(dtype, "int32_data")
    allowed = (field,) if dtype == ir.DataType.STRING else (field, "raw_data")
    if len(present) > 1 or not set(present) <= set(allowed):
        raise InvalidModel(
            "E311",
            f"a tensor of {dtype.name.lower()} has data in {' and '.join(present)}",
            at=at,
            why=f"this type stores its data in {' or in '.join(allowed)}",
            fix=_FIX,
        )
    count_held, expected, unit = _lengths(tensor, dtype, count, field, raw)
    if count_held != expected:
        what = f"a tensor holds {count_held:,} {unit} where its dims need {expected:,}"
        raise InvalidModel(
            "E311",
            what,
            at=at,
            fix=_FIX,
            why="ONNX requires as many elements as the product of the dims",
        )
    _check_range(tensor, dtype, field, at, raw)


def holds_data(tensor: onnx.TensorProto, name: str) -> bool:
    """True if the field ``name`` of ``tensor`` holds data."""
    return tensor.HasField("raw_data") if name == "raw_data" else len(getattr(tensor, name)) > 0


def _lengths(
    tensor: onnx.TensorProto, dtype: ir.DataType, count: int, field: str, raw: Raw | None
) -> tuple[int, int, str]:
    """Return ``(amount that the tensor holds, amount that its dims need, unit)``."""
    if raw is not None:
        return len(raw), (count * dtype.bitwidth + 7) // 8, "bytes"
    count_held = len(getattr(tensor, field))
    if dtype == ir.DataType.STRING:
        return count_held, count, "strings"
    if dtype in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128):
        return count_held, 2 * count, "numbers"
    packed = 8 // dtype.bitwidth if dtype.bitwidth in (2, 4) else 1
    return count_held, -(-count // packed), "numbers"


def _check_range(
    tensor: onnx.TensorProto, dtype: ir.DataType, field: str, at: str, raw: Raw | None
) -> None:
    """Raise InvalidModel E311 for a number that fits the wider field, but not the element type."""
    if dtype == ir.DataType.BOOL and raw:
        lowest, highest, numbers = 0, 1, np.frombuffer(raw, np.uint8)
    elif raw or dtype in (ir.DataType.INT32, ir.DataType.UINT64):
        return
    elif dtype == ir.DataType.UINT32:
        lowest, highest, numbers = 0, 2**32 - 1, np.asarray(tensor.uint64_data, np.uint64)
    elif field == "int32_data":
        lowest, highest = _range(dtype)
        numbers = np.asarray(tensor.int32_data, np.int32)
    else:
        return
    if numbers.size and not lowest <= int(numbers.min()) <= int(numbers.max()) <= highest:
        raise InvalidModel(
            "E311",
            f"a tensor of {dtype.name.lower()} contains a number outside of the type's range",
            at=at,
            why=f"its numbers are {int(numbers.min())} to {int(numbers.max())}, and the type allows"
            f" {lowest} to {highest}",
            fix=_FIX,
        )


def _range(dtype: ir.DataType) -> tuple[int, int]:
    """Return the range of numbers in ``int32_data`` for a tensor of ``dtype``.

    The numbers are values for integer types, and bit patterns for all others. Types of 2 and 4 bits
    are packed into bytes.
    """
    if dtype == ir.DataType.BOOL:
        return 0, 1
    bits = max(8, dtype.bitwidth)
    if dtype in (ir.DataType.INT8, ir.DataType.INT16):
        return -(1 << bits - 1), (1 << bits - 1) - 1
    is_packed_and_signed = dtype.bitwidth < 8 and dtype.is_integer() and dtype.is_signed()
    lowest = -128 if is_packed_and_signed else 0
    return lowest, (1 << bits) - 1
