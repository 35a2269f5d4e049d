"""The epilogue of integer products: requantize sums to bytes, or store the sums themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.fixed_point import FixedPoint, fixed_point, is_fixed
from smelt.native.kernels.quantized.lanes import MOST_SUMS, are_small, declare
from smelt.native.kernels.quantized.operands import (
    constant,
    is_given,
    places_of,
    requantization,
    zero_text,
)
from smelt.native.types import C_TYPES
from smelt.native.writer import Writer

SPARE = 8 * MOST_SUMS
"""The elements that vectors may read past the last."""


@dataclass(frozen=True)
class Finish:
    """How sums are stored: the C names of arrays ``bias`` and ``factors``, empty where unused.

    There are no ``factors`` if sums are the result, or if they are requantized in ``fixed`` point.
    If factors are small (``is_small``), products by them fit 32 bits.
    """

    bias: str
    factors: str
    fixed: FixedPoint | None = None
    is_small: bool = False

    @property
    def is_bytes(self) -> bool:
        """True if micro-kernels store bytes."""
        return bool(self.factors)

    def store(self, body: Writer, to: str, type_: str, sums: str, count: str, channel: str) -> None:
        """Store ``count`` neighbours of ``sums``, as they are or as bytes of a ``channel``.

        ``channel`` is C that may use ``e``, the index of the neighbour.
        """
        if self.fixed is None:
            body.line(f"memcpy({to}, {sums}, (size_t)({count}) * sizeof(int32_t));")
            return
        with body.loop("e", count):
            value = self.fixed.byte(f"({sums})[e]", channel)
            body.line(f"({to})[e] = ({type_}){value};")

    def arguments(self, channel: str, out: str, pitch: str, ends: str = "to, wide") -> str:
        """Return the arguments of a micro-kernel of bytes whose first row or column is of
        ``channel``."""
        given = f"{self.bias} + {channel}, {self.factors} + {channel}, last"
        return f"{given}, (unsigned char *)({out}), {pitch}, {ends}"


def finish_of(cx: KernelContext, count: int, more: np.ndarray | None = None) -> Finish:
    """Return the epilogue of ``count`` filters or columns, and declare its constants.

    ``more`` is added to each sum; it accounts for the zero point of the left side.
    """
    declare(cx)
    scaled = requantization(cx, count)
    if scaled is None and more is None:
        return Finish("", "")
    given = constant(cx, places_of(cx).bias)
    bias = np.zeros(count, np.int64) if given is None else given.reshape(-1).astype(np.int64)
    bias = bias if more is None else bias + more
    start = np.zeros(count + SPARE, np.int32)
    start[:count] = bias.astype(np.int32)
    name = cx.constant(start, C_TYPES[ir.DataType.INT32])
    if scaled is None:
        return Finish(name, "")
    if is_fixed(cx):
        return Finish(name, "", fixed_point(cx, scaled.exact.tolist(), scaled.zero, scaled.signed))
    factors = np.zeros(count + SPARE, np.float32)
    factors[:count] = scaled.factors
    zero, flip = scaled.last
    cx.body.line(f"static const int32_t last[] = {{ {zero}, {flip} }};")
    held = cx.constant(factors, C_TYPES[ir.DataType.FLOAT])
    return Finish(name, held, is_small=are_small(factors))


def finish_less_zero_point(cx: KernelContext, sums: np.ndarray, flip: int, start: str) -> Finish:
    """Return the epilogue that also subtracts the zero point of the left side times weight
    ``sums``.

    ``flip`` is added to the zero point. One that is only known at run time is multiplied into an
    array at ``start``, in scratch space.
    """
    position = places_of(cx).x_zero
    zero = constant(cx, position)
    if zero is not None or not is_given(cx, position):
        point = flip + (0 if zero is None else int(zero.reshape(-1)[0]))
        return finish_of(cx, sums.size, -point * sums)
    declare(cx)
    padded = np.pad(sums.astype(np.int32), (0, SPARE))
    held = cx.constant(padded, C_TYPES[ir.DataType.INT32])
    cx.body.line(f"int32_t *start = (int32_t *)(void *)({start});")
    with cx.body.loop("o", padded.size):
        cx.body.line(f"start[o] = -{held}[o] * ({zero_text(cx)} + {flip});")
    return Finish("start", "")
