"""Convert arrays between NumPy and ONNX Runtime, including element types that NumPy lacks."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from smelt.ir.tensors.packed import packed, unpacked

if TYPE_CHECKING:
    import onnxruntime as ort


def is_native(dtype: ir.DataType | None) -> bool:
    """True if ONNX Runtime itself converts this element type to and from NumPy."""
    if dtype is None or dtype == ir.DataType.STRING:
        return True
    return dtype.bitwidth >= 8 and dtype.numpy().isbuiltin == 1


def to_ort(array: np.ndarray, dtype: ir.DataType) -> ort.OrtValue:
    """Return an OrtValue over the memory of ``array``, which must outlive it.

    Elements of less than a byte are copied, because ONNX Runtime packs them.
    """
    import onnxruntime as ort

    array = np.ascontiguousarray(array).reshape(array.shape)
    if is_native(dtype):
        return ort.OrtValue.ortvalue_from_numpy(array)
    if dtype.bitwidth < 8:
        value = ort.OrtValue.ortvalue_from_shape_and_type(list(array.shape), int(dtype))
        packed_array = packed(array, dtype)
        if packed_array.size:
            ctypes.memmove(
                value._ortvalue.data_ptr(), packed_array.ctypes.data, packed_array.nbytes
            )
        return value
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, int(dtype))


def from_ort(value: ort.OrtValue) -> np.ndarray:
    """Return a copy of an OrtValue as an array of its own element type."""
    dtype = ir.DataType(value.element_type())
    if is_native(dtype):
        return np.asarray(value.numpy())
    raw = ctypes.string_at(value._ortvalue.data_ptr(), value.tensor_size_in_bytes())
    if dtype.bitwidth < 8:
        return unpacked(np.frombuffer(raw, np.uint8), dtype, tuple(value.shape())).copy()
    return np.frombuffer(raw, dtype=dtype.numpy()).reshape(value.shape()).copy()
