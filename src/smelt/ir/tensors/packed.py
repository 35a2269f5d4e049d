"""Packs and unpacks elements of less than a byte, the first in the low bits, as C and files store
them."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir


def packed(array: np.ndarray, dtype: ir.DataType) -> np.ndarray:
    """Return the packed bytes of ``array``, which has one element per byte; other types are
    unchanged."""
    bits = int(dtype.bitwidth)
    if bits >= 8:
        return array
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    per_byte = 8 // bits
    rows = np.zeros((-(-codes.size // per_byte), per_byte), np.uint8)
    rows.reshape(-1)[: codes.size] = codes
    shifted = rows << (bits * np.arange(per_byte, dtype=np.uint8))
    return np.asarray(np.bitwise_or.reduce(shifted, axis=1), np.uint8)


def unpacked(data: np.ndarray, dtype: ir.DataType, shape: tuple[int, ...]) -> np.ndarray:
    """Return the array that ``packed`` turned into ``data``, in the NumPy type of ``dtype``."""
    bits = int(dtype.bitwidth)
    if bits >= 8:
        return data.view(dtype.numpy()).reshape(shape)
    shifts = bits * np.arange(8 // bits, dtype=np.uint8)
    codes = (data[:, None] >> shifts) & np.uint8((1 << bits) - 1)
    flat = codes.reshape(-1)[: int(np.prod(shape))]
    if dtype.is_integer() and dtype.is_signed():
        half = np.uint8(1 << (bits - 1))
        return ((flat ^ half) - half).view(np.int8).astype(dtype.numpy()).reshape(shape)
    return flat.view(dtype.numpy()).reshape(shape)
