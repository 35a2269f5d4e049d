"""What becomes of sums of integers: bytes by a factor each, or the sums themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.lanes import MOST_SUMS, declare
from smelt.native.kernels.quantized.operands import constant, places_of, requantization
from smelt.native.types import C_TYPES

BYTES = """static inline void NAME(const int32_t *restrict s, ptrdiff_t n, PARAMETERS,
    const float *restrict held, unsigned char *restrict out)
{
    const sums whole = *(const sums *)s + BIAS;
    const reals scaled = REAL(whole) * FACTOR;
    const sums near = NEAREST(HELD(scaled, held[0], held[1])) + (int32_t)held[2];
    signed char last[SUMS];
    if (SUMS == 1 || n == SUMS) {
        store_low_bytes((signed char *)out, near);
        return;
    }
    store_low_bytes(last, near);
    memcpy(out, last, (size_t)n);
}
"""

ROW = (
    BYTES.replace("NAME", "store_row")
    .replace("PARAMETERS", "int32_t bias, float factor")
    .replace("BIAS", "bias")
    .replace("FACTOR", "factor")
)
COLUMNS = (
    BYTES.replace("NAME", "store_columns")
    .replace("PARAMETERS", "const int32_t *restrict bias,\n    const float *restrict factor")
    .replace("BIAS", "*(const sums *)bias")
    .replace("FACTOR", "*(const reals *)factor")
)


@dataclass(frozen=True)
class Finish:
    """How sums are stored. ``bias`` and ``factors`` are arrays, or empty if sums are the result."""

    cx: KernelContext
    bias: str
    factors: str

    def row(self, sums: str, count: str, channel: str, out: str) -> str:
        """A statement that stores ``count`` sums of one ``channel``."""
        given = f"{self.bias}[{channel}], {self.factors}[{channel}]"
        return self._store("store_row", ROW, f"{sums}, {count}, {given}", out)

    def columns(self, sums: str, count: str, channel: str, out: str) -> str:
        """The same of ``count`` neighbours from ``channel`` on."""
        given = f"{self.bias} + {channel}, {self.factors} + {channel}"
        return self._store("store_columns", COLUMNS, f"{sums}, {count}, {given}", out)

    def _store(self, name: str, text: str, given: str, out: str) -> str:
        if not self.factors:
            sums, count, *_ = given.split(", ")
            return f"memcpy({out}, {sums}, (size_t)({count}) * sizeof(int32_t));"
        return f"{self.cx.call(name, text)}({given}, held, (unsigned char *)({out}));"


def finish_of(cx: KernelContext, count: int) -> Finish:
    """Of ``count`` filters or columns; writes what the statements read."""
    declare(cx)
    scaled = requantization(cx, count)
    if scaled is None:
        return Finish(cx, "", "")
    given = constant(cx, places_of(cx).bias)
    bias = np.zeros(count + MOST_SUMS, np.int32)
    factors = np.zeros(count + MOST_SUMS, np.float32)
    bias[:count] = 0 if given is None else given.reshape(-1)
    factors[:count] = scaled.factors
    held = ", ".join(f"{number}.0f" for number in scaled.held)
    cx.body.line(f"static const float held[] = {{ {held} }};")
    return Finish(
        cx,
        cx.constant(bias, C_TYPES[ir.DataType.INT32]),
        cx.constant(factors, C_TYPES[ir.DataType.FLOAT]),
    )
