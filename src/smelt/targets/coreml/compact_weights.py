"""Store weights with few different numbers as palettes, and weights with many zeros as sparse.

A palette is a table of numbers, with an index into it for each element. A sparse weight is a mask,
with the elements that are not 0. Core ML unpacks both to the same bits when it loads the model. A
package whose palettes were read as dense numbers thus gets palettes again.
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
"""The most different numbers of a weight that is stored as a palette."""
SAMPLE = 4096
"""How many elements are looked at first: mostly they have too many different numbers already."""
USERS = frozenset({"Conv", "ConvTranspose", "Gather", "Gemm", "MatMul"})
"""Operators whose weights may be unpacked when the model is loaded."""


def compacted(w: Writer, array: np.ndarray, element: Element, name: str) -> Val | None:
    """Return a float weight as a ``constexpr``, unpacked on loading; None if it stays dense.

    It is sparse if at least half of its elements are 0, and a palette if that takes fewer bytes.
    """
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
    """Return a weight that is stored as the palette ``numbers`` with ``indices`` into it.

    Core ML requires a table of 2, 4, 16, 64 or 256 numbers, so the last number is repeated.
    """
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
    """Return a weight that is stored as the elements of ``dense`` where ``mask`` is True."""
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
