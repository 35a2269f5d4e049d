"""The weights of a model as C: one initialized object a tensor, or one blob for all.

Objects are written in hexadecimal words of the size of an element, which do not depend on byte
order, or as strings, which compilers read ten times as fast. A union lets either be read as the
values they are, which C99 allows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from smelt.native.repeated import is_repeated, once
from smelt.native.types import CType

PER_LINE = {1: 20, 2: 12, 4: 9, 8: 5}
"""Words on a line of at most 100 columns."""

ESCAPES_PER_LINE = 24
OCTAL = np.array([f"\\{byte:03o}" for byte in range(256)], "S4")
"""How each byte is spelled in a string: always in three digits, so that none reads on."""

BLOB_ALIGNMENT = 64
"""Bytes: where each tensor of a blob begins."""

IN_LINES = 1024
"""Bytes from which an object begins with a line of memory where vectors are as wide, which take
twice as long from the middle of one to the middle of the next."""


@dataclass(frozen=True, slots=True)
class Weight:
    """One constant tensor: an identifier, its element type, its array, its place in a blob
    and in a table."""

    symbol: str
    type: CType
    array: np.ndarray
    note: str = ""
    offset: int = 0
    number: int = 0

    @property
    def end(self) -> int:
        """Where the next tensor of a blob may begin."""
        return self.offset + -(-self.array.nbytes // BLOB_ALIGNMENT) * BLOB_ALIGNMENT

    @property
    def count(self) -> int:
        """Elements of the C array, at least one: C has no empty arrays."""
        return max(int(self.array.size), 1)

    def declaration(self, lines: str, *, string: bool = False) -> str:
        """The type of the object and a declaration of it; ``lines`` is the macro that aligns it."""
        # C++ wants room for the zero that ends a string.
        first = f"{self.type.word} words[{self.count}];"
        first = f"unsigned char bytes[{self.array.nbytes + 1}];" if string else first
        members = f"{first} {self.type.name} values[{self.count}];"
        union = f"union {self.symbol}_data {{ {members} }};"
        aligned = f" {lines}" if self.array.nbytes >= IN_LINES else ""
        return f"{union}\nextern const union {self.symbol}_data {self.symbol}{aligned};\n"

    def definition(self) -> str:
        """The object with its data."""
        lines = ",\n".join(self._lines())
        head = f"/* {self.note} */\n" if self.note else ""
        return f"{head}const union {self.symbol}_data {self.symbol} = {{ {{\n{lines}\n}} }};\n"

    def string(self) -> str:
        """The object with its data as the bytes of a little-endian machine."""
        spelled = OCTAL[np.frombuffer(_little_endian(self.array), np.uint8)].tobytes().decode()
        step = 4 * ESCAPES_PER_LINE
        lines = [f'"{spelled[at : at + step]}"' for at in range(0, len(spelled), step)] or ['""']
        head = f"/* {self.note} */\n" if self.note else ""
        text = "\n".join(lines)
        return f"{head}const union {self.symbol}_data {self.symbol} = {{ {{\n{text}\n}} }};\n"

    def _lines(self) -> list[str]:
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
    """All tensors at their offsets, as a little-endian machine has them in memory."""
    parts: list[bytes] = []
    for weight in weights:
        data = _little_endian(weight.array)
        parts += [data, bytes(weight.end - weight.offset - len(data))]
    return b"".join(parts)


def _little_endian(array: np.ndarray) -> bytes:
    return np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def digest(array: np.ndarray) -> bytes:
    """Equal for arrays whose elements are equal in order, as far as they repeat alike."""
    how = str((array.shape, array.strides)) if is_repeated(array) else ""
    parts = (how.encode(), once(array).tobytes())
    return b"".join(hashlib.sha256(part).digest() for part in parts)
