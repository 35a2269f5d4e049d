"""Small constant tables in C, named by their contents."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from smelt.native.kernels.kernel import KernelContext


def int_table(cx: KernelContext, stem: str, numbers: Sequence[int]) -> str:
    """Return the name of a table of 32-bit integers: ``stem`` and a hash of the numbers.

    Two kernels with equal numbers so use one table.
    """
    text = ", ".join(map(str, numbers))
    name = f"{stem}_{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    lines = [
        ", ".join(map(str, numbers[first : first + 12])) for first in range(0, len(numbers), 12)
    ]
    inner = ",\n    ".join(lines)
    return cx.call(name, f"static const int32_t {name}[] = {{\n    {inner}\n}};\n")
