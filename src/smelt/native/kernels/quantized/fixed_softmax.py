"""Softmax of bytes in integer arithmetic.

The exponential of a byte is ``part * 2**-below``: ``part`` is an integer of 24 bits, ``below`` the
difference between the largest exponent of the table and its own.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.kernel import KernelContext
from smelt.native.types import C_TYPES

ROW = """static void fixed_softmax(const unsigned char *restrict x, ptrdiff_t n,
    const int32_t *restrict parts, const unsigned char *restrict below,
    uint32_t *restrict terms, uint64_t inverse, int32_t zero, int32_t low,
    unsigned char *restrict y)
{
    int32_t least = 255;
    uint64_t sum = 0;
    for (ptrdiff_t i = 0; i < n; ++i)
        least = below[x[i]] < least ? below[x[i]] : least;
    for (ptrdiff_t i = 0; i < n; ++i) {
        const int32_t down = below[x[i]] - least;
        terms[i] = down < 32 ? (uint32_t)parts[x[i]] >> down : 0;
        sum += terms[i];
    }
    for (ptrdiff_t i = 0; i < n; ++i) {
        const uint64_t share = (terms[i] * inverse + (sum << 15)) / (sum << 16);
        const int32_t near = (int32_t)(share < 1024 ? share : 1024) + zero;
        y[i] = (unsigned char)(near < low ? low : near > low + 255 ? low + 255 : near);
    }
}
"""

MOST_INVERSE = 2**38
"""The limit of ``inverse``, which is 2**16 divided by the scale of the result."""


def fixed_softmax(cx: KernelContext, table: np.ndarray, scale: float) -> tuple[str, str]:
    """Declare ``ROW``; return its name and its arguments ``parts`` to ``inverse``.

    The caller writes the other arguments. ``table`` is the exponential of each byte, ``scale`` the
    scale of the result.
    """
    part, exponent = np.frexp(table.astype(np.float64))
    below = np.where(part > 0, np.minimum(exponent.max() - exponent, 255), 255)
    parts = cx.constant(np.rint(part * 2**24).astype(np.int32), C_TYPES[ir.DataType.INT32])
    downs = cx.constant(below.astype(np.uint8), C_TYPES[ir.DataType.UINT8])
    inverse = min(round(2**16 / scale), MOST_INVERSE)
    terms = cx.scratch(C_TYPES[ir.DataType.UINT32])
    return cx.call("fixed_softmax", ROW), f"{parts}, {downs}, {terms}, {inverse}u"
