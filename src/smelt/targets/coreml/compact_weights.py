"""Weights of few different numbers, or mostly zeros: unpacked when the model is loaded.

The package holds a palette with an index for each element, or the elements that are not 0 with a
mask. The unpacked weight has the same bits. So a weight that a package held as a palette, and that
was read as dense numbers, is a palette again.
"""

from __future__ import annotations

import numpy as np

from smelt.mlpackage.program import Constant, Element, TensorType
from smelt.targets.coreml.writer import Val, Writer

BITS = {1: Element.UINT1, 2: Element.UINT2, 4: Element.UINT4, 6: Element.UINT6, 8: Element.UINT8}
"""The element type of indices by their bits."""
FEWEST = 256
"""A weight of fewer elements stays dense."""
LARGEST_PALETTE = 256
SAMPLE = 4096
"""As many elements tell that a large weight has too many different numbers."""
USERS = frozenset({"Conv", "ConvTranspose", "Gather", "Gemm", "MatMul"})
"""Operators whose weights may be unpacked when the model is loaded."""


def compacted(w: Writer, array: np.ndarray, element: Element, name: str) -> Val | None:
    """Return a float weight as a constexpr of fewer bytes; None if there is no such form."""
    dense = np.ascontiguousarray(array, element.numpy)
    if dense.ndim < 2 or dense.size < FEWEST:
        return None
    bits = dense.view(np.uint16 if dense.itemsize == 2 else np.uint32).reshape(dense.shape)
    if int(np.count_nonzero(bits)) * 2 <= dense.size:
        return _sparse(w, dense, bits != 0, element, name)
    if np.unique(bits.reshape(-1)[:SAMPLE]).size > LARGEST_PALETTE:
        return None
    numbers, indices = np.unique(bits, return_inverse=True)
    if numbers.size > LARGEST_PALETTE or dense.nbytes < 4 * numbers.nbytes:
        return None
    return _palette(w, numbers.view(dense.dtype), indices.reshape(dense.shape), element, name)


def _palette(
    w: Writer, numbers: np.ndarray, indices: np.ndarray, element: Element, name: str
) -> Val:
    """Write a palette, filled up to a power of 2, and an index for each element."""
    bits = next(each for each in BITS if 1 << each >= numbers.size)
    table = np.concatenate([numbers, np.repeat(numbers[-1:], (1 << bits) - numbers.size)])
    shape = indices.shape
    label = "constexpr_lut_to_dense"
    if w.ios >= 18:
        lut = table.reshape([1] * len(shape) + [table.size, 1])
        return w.constexpr(
            label, element, shape, name, indices=_stored(indices, BITS[bits]), lut=lut
        )
    sizes = np.asarray(shape, np.uint32)
    packed = _in_bytes(indices, bits)
    return w.constexpr(label, element, shape, name, indices=packed, lut=table, shape=sizes)


def _sparse(w: Writer, dense: np.ndarray, mask: np.ndarray, element: Element, name: str) -> Val:
    """Write the elements that are not 0, and the mask of their places."""
    label, shape, data = "constexpr_sparse_to_dense", dense.shape, dense[mask]
    if w.ios >= 18:
        places = _stored(mask, Element.UINT1)
        return w.constexpr(label, element, shape, name, nonzero_data=data, mask=places)
    sizes = np.asarray(shape, np.uint32)
    packed = _in_bytes(mask, 1)
    return w.constexpr(label, element, shape, name, nonzero_data=data, mask=packed, shape=sizes)


def _stored(array: np.ndarray, element: Element) -> Constant:
    """Return small integers as a constant of the weight file."""
    return Constant(TensorType(element, array.shape), array.astype(np.uint8), True)


def _in_bytes(array: np.ndarray, bits: int) -> np.ndarray:
    """Return numbers of ``bits`` bits packed in bytes, the lowest bit first."""
    single = (array.reshape(-1, 1).astype(np.int64) >> np.arange(bits)) & 1
    return np.packbits(single.astype(np.uint8).reshape(-1), bitorder="little")
