"""The weights of a model as C: one initialized object per tensor, or one blob.

Objects are written as hexadecimal words of the element size, which do not depend on byte order, or
as strings, which compilers read ten times as fast. A union reads either as values, as C99 allows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from smelt.native.repeated import is_repeated, without_repeats
from smelt.native.types import CType

PER_LINE = {1: 20, 2: 12, 4: 9, 8: 5}
"""Words on a line of at most 100 columns."""

ESCAPES_PER_LINE = 24
OCTAL = np.array([f"\\{byte:03o}" for byte in range(256)], "S4")
"""The escape of each byte in a string, always three digits so that no digit after it belongs to
it."""

BLOB_ALIGNMENT = 64
"""Each tensor of a blob begins at a multiple of this many bytes."""

IN_LINES = 1024
"""Objects of at least this many bytes begin at a cache line where vectors are as wide; a vector
that crosses lines takes twice as long."""


@dataclass(frozen=True, slots=True)
class Weight:
    """One constant tensor: C identifier, element type, array, offset in the blob, index in the
    table.
    """

    symbol: str
    type: CType
    array: np.ndarray
    note: str = ""
    offset: int = 0
    number: int = 0

    @property
    def end(self) -> int:
        """The offset at which the next tensor of a blob may begin: the end of this one, aligned."""
        return self.offset + -(-self.array.nbytes // BLOB_ALIGNMENT) * BLOB_ALIGNMENT

    @property
    def count(self) -> int:
        """The elements of the C array, at least one because C has no empty arrays."""
        return max(int(self.array.size), 1)

    def declaration(self, lines: str, *, string: bool = False) -> str:
        """Return the object's type and declaration; ``lines`` is the macro that aligns it.

        ```
        union net_weight_0_data { uint32_t words[8]; float values[8]; };
        extern const union net_weight_0_data net_weight_0;
        ```
        """
        # C++ wants room for the zero that ends a string.
        first = f"{self.type.word} words[{self.count}];"
        first = f"unsigned char bytes[{self.array.nbytes + 1}];" if string else first
        members = f"{first} {self.type.name} values[{self.count}];"
        union = f"union {self.symbol}_data {{ {members} }};"
        aligned = f" {lines}" if self.array.nbytes >= IN_LINES else ""
        return f"{union}\nextern const union {self.symbol}_data {self.symbol}{aligned};\n"

    def definition(self) -> str:
        """Return the object with its data.

        ```
        const union net_weight_0_data net_weight_0 = { {
        0x3f800000u,0x40000000u
        } };
        ```
        """
        lines = ",\n".join(self._lines())
        head = f"/* {self.note} */\n" if self.note else ""
        return f"{head}const union {self.symbol}_data {self.symbol} = {{ {{\n{lines}\n}} }};\n"

    def string(self) -> str:
        """Return the object with its data as a string of little-endian bytes."""
        escaped = OCTAL[np.frombuffer(_little_endian(self.array), np.uint8)].tobytes().decode()
        step = 4 * ESCAPES_PER_LINE
        lines = [f'"{escaped[at : at + step]}"' for at in range(0, len(escaped), step)] or ['""']
        head = f"/* {self.note} */\n" if self.note else ""
        text = "\n".join(lines)
        return f"{head}const union {self.symbol}_data {self.symbol} = {{ {{\n{text}\n}} }};\n"

    def _lines(self) -> list[str]:
        """Return the elements as lines of hexadecimal words; an empty tensor has one word, 0.

        The bytes of a word are put into big-endian order, in which its digits are written.
        """
        size = self.type.size
        words = np.ascontiguousarray(self.array).reshape(-1).view(f"u{size}")
        data = words.astype(f">u{size}").tobytes() or bytes(size)
        step, suffix = PER_LINE[size] * size, "ULL" if size == 8 else "u" if size == 4 else ""
        lines = []
        for at in range(0, len(data), step):
            text = data[at : at + step].hex(",", size)
            lines.append("0x" + text.replace(",", f"{suffix},0x") + suffix)
        return lines


def blob(weights: Iterable[Weight]) -> bytes:
    """Return all tensors at their offsets, in little-endian bytes."""
    parts: list[bytes] = []
    for weight in weights:
        data = _little_endian(weight.array)
        parts += [data, bytes(weight.end - weight.offset - len(data))]
    return b"".join(parts)


def _little_endian(array: np.ndarray) -> bytes:
    """Return the elements of ``array`` as little-endian bytes."""
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def digest(array: np.ndarray) -> bytes:
    """Return a hash of elements, and of shape and strides if the array repeats elements."""
    how = str((array.shape, array.strides)) if is_repeated(array) else ""
    parts = (how.encode(), without_repeats(array).tobytes())
    return b"".join(hashlib.sha256(part).digest() for part in parts)
