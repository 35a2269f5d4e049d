"""Complex numbers at the interface of a model: real tensors with a last dim of 2.

The operators of ONNX take no complex numbers. An array of them is a tensor with one dim more, which
holds the real and the imaginary part: the memory of NumPy's complex arrays, and what
``view_as_real`` of PyTorch gives. Such an input or output carries a mark, so that whoever calls the
model can take and give complex arrays. The mark is metadata of the value, and so goes with it
through passes, new names and files.
"""

from __future__ import annotations

import onnx_ir as ir

META_KEY = "smelt.complex"

COMPLEX = {
    ir.DataType.FLOAT: ir.DataType.COMPLEX64,
    ir.DataType.DOUBLE: ir.DataType.COMPLEX128,
}
"""The complex type of pairs by the element type of their parts; other parts have none."""


def mark_pairs(value: ir.Value, text: str) -> None:
    """Say that ``value`` stands for complex numbers, whose type is written as ``text``."""
    value.metadata_props[META_KEY] = "pairs"
    value.doc_string = f"{text} as pairs of numbers: real and imaginary parts in the last dim"


def complex_type_of(value: ir.Value) -> ir.DataType | None:
    """The complex element type that ``value`` stands for, None if it is what it is.

    What no longer has pairs in its last dim, such as a part of another type, stands for nothing.
    """
    if META_KEY not in value.metadata_props or value.dtype is None or not value.shape:
        return None
    return COMPLEX.get(value.dtype) if value.shape[-1] == 2 else None
