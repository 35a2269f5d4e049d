"""The weights of a model as C: one initialized object a tensor, in hexadecimal words.

A word has the size of an element, so the text does not depend on byte order. A union lets the
words be read as the values they are, which C99 allows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from smelt.native.types import CType

PER_LINE = {1: 20, 2: 12, 4: 9, 8: 5}
"""Words on a line of at most 100 columns."""


@dataclass(frozen=True, slots=True)
class Weight:
    """One constant tensor: an identifier, its element type and its array."""

    symbol: str
    type: CType
    array: np.ndarray
    note: str = ""

    @property
    def count(self) -> int:
        """Elements of the C array, at least one: C has no empty arrays."""
        return max(int(self.array.size), 1)

    def declaration(self) -> str:
        """The type of the object and a declaration of it."""
        members = f"{self.type.word} words[{self.count}]; {self.type.name} values[{self.count}];"
        union = f"union {self.symbol}_data {{ {members} }};"
        return f"{union}\nextern const union {self.symbol}_data {self.symbol};\n"

    def definition(self) -> str:
        """The object with its data."""
        lines = ",\n".join(self._lines())
        head = f"/* {self.note} */\n" if self.note else ""
        return f"{head}const union {self.symbol}_data {self.symbol} = {{ {{\n{lines}\n}} }};\n"

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
