"""Element types in C: names, literals, and the unsigned integers in which weights are written."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir


@dataclass(frozen=True, slots=True)
class CType:
    """One element type.

    - ``name``: the C type of an element. ``word``: the unsigned integer of its size.
    - ``modular``: the unsigned integer in which sums and products wrap instead of overflowing.
    - ``kind``: ``float``, ``int`` or ``bool``. ``f``: the suffix of its math.h functions.
    - ``computed``: for a storage-only type, an ``int`` of its code, the type to compute in.
    """

    name: str
    word: str
    modular: str
    size: int
    kind: str
    f: str = ""
    signed: bool = True
    computed: ir.DataType | None = None

    def literal(self, value: float | int | bool) -> str:
        """Return ``value`` as a constant expression of this type."""
        if self.kind == "float":
            return self._float(float(value))
        number = int(value)
        if self.kind == "bool":
            return str(int(bool(number)))
        if number == -(2**63):
            return "(-9223372036854775807LL - 1)"
        if -(2**31) < number < 2**31:
            return str(number) if number >= 0 else f"({number})"
        suffix = "LL" if number < 2**63 else "ULL"
        return f"{number}{suffix}" if number >= 0 else f"({number}{suffix})"

    def _float(self, value: float) -> str:
        """Return the C constant: ``1.5e+00f``, ``NAN`` or ``INFINITY``."""
        if math.isnan(value):
            return "NAN"
        if math.isinf(value):
            return "INFINITY" if value > 0 else "(-INFINITY)"
        narrow = self.f == "f"
        text = repr(float(value))
        if narrow:
            with np.errstate(over="ignore"):
                rounded = np.float32(value)
            if np.isinf(rounded):
                return self._float(float(rounded))
            text = np.format_float_scientific(rounded, unique=True, trim="0")
        text += "f" if narrow else ""
        return f"({text})" if text.startswith("-") else text

    def lowest(self) -> str:
        """Return the lowest value as C, the identity of a maximum: ``(-INFINITY)`` for floats."""
        if self.kind == "float":
            return "(-INFINITY)"
        return self.literal(-(2 ** (8 * self.size - 1)) if self.signed else 0)

    def highest(self) -> str:
        """Return the highest value as C, the identity of a minimum: ``INFINITY`` for floats."""
        if self.kind == "float":
            return "INFINITY"
        if self.kind == "bool":
            return "1"
        return self.literal(2 ** (8 * self.size - int(self.signed)) - 1)


BOOL = CType("uint8_t", "uint8_t", "uint32_t", 1, "bool", signed=False)


def _stored_type(word: str, computed: ir.DataType) -> CType:
    """Return the C type of codes that are stored as ``word`` and computed as ``computed``."""
    size = 2 if word == "uint16_t" else 1
    return CType(word, word, "uint32_t", size, "int", signed=False, computed=computed)


C_TYPES: dict[ir.DataType, CType] = {
    ir.DataType.FLOAT: CType("float", "uint32_t", "float", 4, "float", "f"),
    ir.DataType.DOUBLE: CType("double", "uint64_t", "double", 8, "float"),
    ir.DataType.INT8: CType("int8_t", "uint8_t", "uint32_t", 1, "int"),
    ir.DataType.INT16: CType("int16_t", "uint16_t", "uint32_t", 2, "int"),
    ir.DataType.INT32: CType("int32_t", "uint32_t", "uint32_t", 4, "int"),
    ir.DataType.INT64: CType("int64_t", "uint64_t", "uint64_t", 8, "int"),
    ir.DataType.UINT8: CType("uint8_t", "uint8_t", "uint32_t", 1, "int", signed=False),
    ir.DataType.UINT16: CType("uint16_t", "uint16_t", "uint32_t", 2, "int", signed=False),
    ir.DataType.UINT32: CType("uint32_t", "uint32_t", "uint32_t", 4, "int", signed=False),
    ir.DataType.UINT64: CType("uint64_t", "uint64_t", "uint64_t", 8, "int", signed=False),
    ir.DataType.BOOL: BOOL,
    ir.DataType.FLOAT16: _stored_type("uint16_t", ir.DataType.FLOAT),
    ir.DataType.BFLOAT16: _stored_type("uint16_t", ir.DataType.FLOAT),
    ir.DataType.FLOAT8E4M3FN: _stored_type("uint8_t", ir.DataType.FLOAT),
    ir.DataType.FLOAT8E4M3FNUZ: _stored_type("uint8_t", ir.DataType.FLOAT),
    ir.DataType.FLOAT8E5M2: _stored_type("uint8_t", ir.DataType.FLOAT),
    ir.DataType.FLOAT8E5M2FNUZ: _stored_type("uint8_t", ir.DataType.FLOAT),
    ir.DataType.FLOAT8E8M0: _stored_type("uint8_t", ir.DataType.FLOAT),
    ir.DataType.FLOAT4E2M1: _stored_type("uint8_t", ir.DataType.FLOAT),
    ir.DataType.INT4: _stored_type("uint8_t", ir.DataType.INT8),
    ir.DataType.UINT4: _stored_type("uint8_t", ir.DataType.UINT8),
    ir.DataType.INT2: _stored_type("uint8_t", ir.DataType.INT8),
    ir.DataType.UINT2: _stored_type("uint8_t", ir.DataType.UINT8),
}
"""The element types of the engine."""

INDEX = C_TYPES[ir.DataType.INT32]
"""The type of index tables."""


def fill_types(text: str, type_: CType) -> str:
    """Return ``text`` with the placeholders ``@t``, ``@m`` and ``@f`` replaced by names of
    ``type_``.
    """
    text = text.replace("@t", type_.name).replace("@m", type_.modular)
    return text.replace("@f", type_.f)


def from_bytes(address: str) -> str:
    """Return ``address`` cast through ``void *``, so -Wcast-align does not warn about bytes."""
    return f"(void *)({address})"


def typed_pointer(type_: str, pointer: str, raw: bool) -> str:
    """Return ``pointer`` cast to the C type ``type_``; ``pointer`` itself if ``raw``."""
    return pointer if raw else f"({type_}){pointer}"
