"""The weight file of a package: records of arrays, each aligned to 64 bytes.

    file     count u32, version u32 = 2, zeros up to byte 64, then the records
    record   sentinel 0xDEADBEEF u32, element u32, bytes u64, offset of the data u64, padding bits
             u64, zeros up to 64 bytes; then the data, padded with zeros to a multiple of 64 bytes

All numbers are little-endian. Elements of less than 8 bits are packed, the first in the lowest
bits.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator

import numpy as np

from smelt.mlpackage.program import Element

ALIGNMENT = 64
SENTINEL = 0xDEADBEEF
VERSION = 2
FILE_NAME = "@model_path/weights/weight.bin"
"""The name by which programs refer to the file."""

STORED = {
    Element.FLOAT16: 1,
    Element.FLOAT32: 2,
    Element.UINT8: 3,
    Element.INT8: 4,
    Element.BFLOAT16: 5,
    Element.INT16: 6,
    Element.UINT16: 7,
    Element.INT4: 8,
    Element.UINT1: 9,
    Element.UINT2: 10,
    Element.UINT4: 11,
    Element.UINT3: 12,
    Element.UINT6: 13,
    Element.INT32: 14,
    Element.UINT32: 15,
    Element.FLOAT8E4M3FN: 16,
    Element.FLOAT8E5M2: 17,
}
"""The number of each element type in a record."""


def pack(array: np.ndarray, element: Element) -> bytes:
    """Return the bytes of ``array`` in the file, with elements of less than 8 bits packed."""
    bits = element.bits
    if bits >= 8:
        flat = np.ascontiguousarray(array, element.numpy)
        return flat.astype(flat.dtype.newbyteorder("<"), copy=False).tobytes()
    numbers = np.asarray(array).ravel().view(np.uint8)
    digits = np.unpackbits(numbers[:, None], axis=1, count=bits, bitorder="little")
    return np.packbits(digits.ravel(), bitorder="little").tobytes()


def unpack(data: bytes | memoryview, element: Element, count: int) -> np.ndarray:
    """Return ``count`` elements of packed ``data`` as a flat array; int4 is sign-extended."""
    bits = element.bits
    if bits >= 8:
        array = np.frombuffer(data, element.numpy.newbyteorder("<"), count)
        return array.astype(element.numpy, copy=False)
    digits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[: count * bits]
    numbers = np.packbits(digits.reshape(count, bits), axis=1, bitorder="little").ravel()
    if element == Element.INT4:
        return ((numbers ^ 8).astype(np.int8) - 8).astype(np.int8)
    return numbers


class WeightFile:
    """The records of one weight file, in order; equal arrays have one record.

    ``size`` is the number of bytes so far. Records are written by ``pieces``, not kept as bytes.
    """

    def __init__(self) -> None:
        """Begin with the header alone."""
        self.size = ALIGNMENT
        self._records: list[tuple[Element, np.ndarray, int]] = []
        self._known: dict[tuple[Element, bytes], int] = {}
        self._by_identity: dict[tuple[Element, int], tuple[np.ndarray, int]] = {}

    def add(self, array: np.ndarray, element: Element) -> int:
        """Return the offset of the record of ``array``; a record is added unless one is equal."""
        identity = element, id(array)
        if identity in self._by_identity:
            return self._by_identity[identity][1]
        key = element, hashlib.sha256(np.ascontiguousarray(array).data).digest()
        if key not in self._known:
            self._known[key] = self.size
            size = -(-array.size * element.bits // 8)
            self._records.append((element, array, size))
            self.size += ALIGNMENT + -(-size // ALIGNMENT) * ALIGNMENT
        self._by_identity[identity] = array, self._known[key]  # keeps the array, so its id
        return self._known[key]

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes of the file, one record after another."""
        yield struct.pack("<II", len(self._records), VERSION).ljust(ALIGNMENT, b"\0")
        at = ALIGNMENT
        for element, array, size in self._records:
            padding = (-array.size * element.bits) % 8
            head = struct.pack(
                "<IIQQQ", SENTINEL, STORED[element], size, at + ALIGNMENT, padding
            ).ljust(ALIGNMENT, b"\0")
            yield head + pack(array, element) + bytes(-size % ALIGNMENT)
            at += ALIGNMENT + -(-size // ALIGNMENT) * ALIGNMENT
