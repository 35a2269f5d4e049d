"""The bytes of arrays and tensors, a few megabytes at a time.

``tobytes`` copies a whole tensor, and a transposed tensor element by element; one weight may take a
third of memory.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator

import numpy as np
import onnx_ir as ir

CHUNK = 1 << 24
"""Approximate size of a chunk in bytes."""

SMALL = 1 << 20
"""Arrays of at most this many bytes fit a cache, whatever the order in which they are read."""

BLOCK = 64
"""Elements per axis of a block that is transposed at once, so that each cache line is read once."""


def in_order(array: np.ndarray) -> np.ndarray:
    """Return ``array`` in C order, or ``array`` itself if it is contiguous.

    A large transposed array is copied in square blocks, in a third of NumPy's time.
    """
    if array.flags.c_contiguous or array.nbytes <= SMALL or array.ndim < 2:
        return np.ascontiguousarray(array).reshape(array.shape)
    contiguous_axis, *other_axes = sorted(
        range(array.ndim), key=lambda axis: (array.shape[axis] == 1, abs(array.strides[axis]))
    )
    longest_axis = max(other_axes, key=lambda axis: array.shape[axis])
    copy = np.empty(array.shape, array.dtype)
    reordered, target = (
        np.moveaxis(source, (contiguous_axis, longest_axis), (0, 1)) for source in (array, copy)
    )
    for row in range(0, reordered.shape[0], BLOCK):
        for column in range(0, reordered.shape[1], BLOCK):
            block = np.s_[row : row + BLOCK, column : column + BLOCK]
            target[block] = reordered[block]
    return copy


class TransposedTensor(ir.Tensor):
    """A tensor whose array is not in C order; its bytes are made block by block."""

    def tobytes(self) -> bytes:
        """Return the bytes in C order, as ``ir.Tensor`` does."""
        return in_order(self.numpy()).tobytes()


def as_transposed(tensor: ir.TensorProtocol) -> ir.TensorProtocol:
    """Return ``tensor`` as a TransposedTensor if its array is large and not in C order, else
    itself."""
    if type(tensor) is not ir.Tensor or tensor.nbytes <= SMALL or tensor.dtype.bitwidth < 8:
        return tensor
    array = tensor.numpy()
    if array.flags.c_contiguous or sys.byteorder == "big":
        return tensor
    return TransposedTensor(
        array,
        dtype=tensor.dtype,
        shape=tensor.shape,
        name=tensor.name,
        doc_string=tensor.doc_string,
        metadata_props=tensor.metadata_props,
    )


def array_chunks(array: np.ndarray) -> Iterator[memoryview]:
    """Yield the bytes of ``array`` in C order; each chunk is valid until the next is requested."""
    if array.nbytes <= CHUNK or array.flags.c_contiguous:
        flat = in_order(array).reshape(-1).view(np.uint8)
        for start in range(0, flat.size, CHUNK):
            yield flat[start : start + CHUNK].data
        return
    rows = max(1, CHUNK * len(array) // array.nbytes)
    for start in range(0, len(array), rows):
        part = array[start : start + rows]
        yield from array_chunks(part if rows > 1 else part[0])


def tensor_chunks(tensor: ir.TensorProtocol) -> Iterator[bytes | memoryview]:
    """Yield the bytes of ``tensor.tobytes()`` in chunks: little endian, sub-byte types packed."""
    if tensor.dtype == ir.DataType.STRING or tensor.dtype.bitwidth < 8:
        yield tensor.tobytes()
        return
    array = tensor.numpy()
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    yield from array_chunks(array)


def tensor_digest(tensor: ir.TensorProtocol) -> bytes:
    """Return the SHA-256 digest of ``tensor.tobytes()``, read in chunks."""
    digest = hashlib.sha256()
    for chunk in tensor_chunks(tensor):
        digest.update(chunk)
    return digest.digest()
