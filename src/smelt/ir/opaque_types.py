"""Types that onnx_ir has no class for: maps, and sequences of them.

A value of such a type has no ``type``; what the file said of it stays in its ``meta``, so that it
can be shown and written again. No pass or target reads more than that.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

META_KEY = "smelt.opaque_type"


@dataclass(frozen=True)
class OpaqueType:
    """``data`` is the serialized TypeProto; ``text`` shows it: ``sequence(map(int64,float))``."""

    data: bytes
    text: str


def opaque_type_of(value: ir.Value) -> OpaqueType | None:
    """The type of ``value`` if it is one that onnx_ir has no class for."""
    found: OpaqueType | None = value.meta.get(META_KEY)
    return found


def set_opaque_type(value: ir.Value, type_: OpaqueType) -> None:
    """Note that ``value`` is of ``type_``."""
    value.meta[META_KEY] = type_
