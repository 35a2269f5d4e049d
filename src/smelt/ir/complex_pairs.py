"""Complex numbers at the interface of a model: real tensors with a last dim of 2.

The operators of ONNX take no complex numbers. A complex array is stored as a tensor with one more
dim that holds the real and the imaginary part: the memory layout of NumPy's complex arrays and of
PyTorch's ``view_as_real``. Such an input or output carries a mark in its metadata, so callers can
pass and receive complex arrays. The mark survives passes, new names and files.
"""

from __future__ import annotations

import onnx_ir as ir

META_KEY = "smelt.complex"

COMPLEX = {
    ir.DataType.FLOAT: ir.DataType.COMPLEX64,
    ir.DataType.DOUBLE: ir.DataType.COMPLEX128,
}
"""Element type of the parts to the complex type; other element types have no complex type."""


def mark_pairs(value: ir.Value, text: str) -> None:
    """Mark ``value`` as pairs that stand for complex numbers of the type written as ``text``."""
    value.metadata_props[META_KEY] = "pairs"
    value.doc_string = f"{text} as pairs of numbers: real and imaginary parts in the last dim"


def complex_type_of(value: ir.Value) -> ir.DataType | None:
    """Return the complex element type with which ``value`` is marked, or None."""
    if META_KEY not in value.metadata_props or value.dtype is None or not value.shape:
        return None
    return COMPLEX.get(value.dtype) if value.shape[-1] == 2 else None
