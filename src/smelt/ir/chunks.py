"""The bytes of arrays and tensors, a few megabytes at a time.

``tobytes`` copies a tensor whole, and a transposed one twice; a weight may take a third of memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

CHUNK = 1 << 24
"""Bytes of a chunk, about."""


def array_chunks(array: np.ndarray) -> Iterator[memoryview]:
    """The bytes of ``array`` in C order, each chunk valid until the next."""
    if array.nbytes <= CHUNK or array.flags.c_contiguous:
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for start in range(0, flat.size, CHUNK):
            yield flat[start : start + CHUNK].data
        return
    rows = max(1, CHUNK * len(array) // array.nbytes)
    for start in range(0, len(array), rows):
        part = array[start : start + rows]
        yield from array_chunks(part if rows > 1 else part[0])


def tensor_chunks(tensor: ir.TensorProtocol) -> Iterator[bytes | memoryview]:
    """What ``tensor.tobytes()`` gives, in chunks: little endian, small types packed."""
    if tensor.dtype == ir.DataType.STRING or tensor.dtype.bitwidth < 8:
        yield tensor.tobytes()
        return
    array = tensor.numpy()
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    yield from array_chunks(array)
