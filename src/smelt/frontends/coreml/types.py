"""Element types of MIL as those of ONNX."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir as ir

from smelt.errors import Unsupported
from smelt.mlpackage.program import Constant, Element, TensorType

_TYPES = {
    Element.BOOL: ir.DataType.BOOL,
    Element.STRING: ir.DataType.STRING,
    Element.FLOAT16: ir.DataType.FLOAT16,
    Element.FLOAT32: ir.DataType.FLOAT,
    Element.FLOAT64: ir.DataType.DOUBLE,
    Element.BFLOAT16: ir.DataType.BFLOAT16,
    Element.INT8: ir.DataType.INT8,
    Element.INT16: ir.DataType.INT16,
    Element.INT32: ir.DataType.INT32,
    Element.INT64: ir.DataType.INT64,
    Element.INT4: ir.DataType.INT4,
    Element.UINT8: ir.DataType.UINT8,
    Element.UINT16: ir.DataType.UINT16,
    Element.UINT32: ir.DataType.UINT32,
    Element.UINT64: ir.DataType.UINT64,
    Element.UINT4: ir.DataType.UINT4,
    Element.FLOAT8E4M3FN: ir.DataType.FLOAT8E4M3FN,
    Element.FLOAT8E5M2: ir.DataType.FLOAT8E5M2,
}

WORDS = {
    "bool": ir.DataType.BOOL,
    "fp16": ir.DataType.FLOAT16,
    "fp32": ir.DataType.FLOAT,
    "fp64": ir.DataType.DOUBLE,
    **{
        f"{sign}int{bits}": ir.DataType[f"{sign}int{bits}".upper()]
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
}
"""Element types by their names in parameters of MIL operators such as ``cast``."""

_BITS = {
    ir.DataType.BFLOAT16: ml_dtypes.bfloat16,
    ir.DataType.FLOAT8E4M3FN: ml_dtypes.float8_e4m3fn,
    ir.DataType.FLOAT8E5M2: ml_dtypes.float8_e5m2,
    ir.DataType.INT4: ml_dtypes.int4,
    ir.DataType.UINT4: ml_dtypes.uint4,
}


def onnx_type(element: Element) -> ir.DataType:
    """Return the ONNX type of a MIL element type; raises E105 for integers of 1, 2, 3 or 6 bits."""
    if element not in _TYPES:
        raise Unsupported(
            "E105",
            f"a Core ML program computes with {element.name.lower()}",
            why="ONNX has no such element type; Core ML uses it for the indices of a palette only",
            fix="convert the source model without it",
        )
    return _TYPES[element]


def tensor_of(constant: Constant) -> ir.Tensor | ir.StringTensor:
    """Return a constant as an ONNX tensor; it shares the memory unless elements have 4 bits."""
    assert isinstance(constant.type, TensorType)
    dtype = onnx_type(constant.type.element)
    array = np.asarray(constant.value)
    if dtype == ir.DataType.STRING:
        texts = [text.encode() for text in array.reshape(-1).tolist()]
        return ir.StringTensor(texts, shape=ir.Shape(array.shape))
    if dtype in _BITS:
        bits = np.dtype(_BITS[dtype])
        array = array.astype(bits) if dtype.bitwidth < 8 else array.view(bits)
    return ir.Tensor(array, dtype=dtype)
