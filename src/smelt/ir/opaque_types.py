"""Types for which onnx_ir has no class: maps, and sequences of maps.

A value of such a type has no ``type``. Its serialized type stays in its ``meta``, so that it can be
shown and written again; passes and targets use nothing else of it.
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
    """Return the opaque type of ``value``, or None if onnx_ir represents its type."""
    opaque_type: OpaqueType | None = value.meta.get(META_KEY)
    return opaque_type


def set_opaque_type(value: ir.Value, type_: OpaqueType) -> None:
    """Note that ``value`` has the opaque type ``type_``."""
    value.meta[META_KEY] = type_
