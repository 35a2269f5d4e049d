"""The epilogue of integer products: requantize sums to bytes, or store the sums themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.native.emit.writer import Writer
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.fixed_point import FixedPoint, fixed_point, is_fixed
from smelt.native.kernels.quantized.integer_vectors import MOST_SUMS, are_small, declare
from smelt.native.kernels.quantized.operands import (
    bias_steps,
    constant,
    input_positions,
    is_present,
    requantization,
    zero_text,
)
from smelt.native.kernels.register_blocks import machine
from smelt.native.types import C_TYPES

TILE_OF_BYTES = """    const int32_t *restrict bias, ARRAYS,
    const int32_t *restrict last, unsigned char *restrict out, ptrdiff_t pitch,
    const ptrdiff_t *restrict to, const ptrdiff_t *restrict wide)"""
"""The last parameters of micro-kernels that store bytes."""

SPARE = 8 * MOST_SUMS
"""The elements that vectors may read past the last."""


def spare() -> int:
    """Return the elements that kernels of this machine may read past the last."""
    return 0 if machine().pixel_major else SPARE


@dataclass(frozen=True)
class Epilogue:
    """How sums are stored: the C names of the arrays ``bias``, ``factors`` and ``fractions``.

    ``factors`` is "" if sums are the result, or if they are requantized in ``fixed`` point.
    ``fractions`` is "" if the bias is whole steps. ``is_small``: products by the factors fit 32
    bits.
    """

    bias: str
    factors: str
    fractions: str = ""
    fixed: FixedPoint | None = None
    is_small: bool = False

    @property
    def is_bytes(self) -> bool:
        """True if micro-kernels store bytes: only then the sums have factors to scale them."""
        return bool(self.factors)

    def store(self, body: Writer, to: str, type_: str, sums: str, count: str, channel: str) -> None:
        """Write the store of ``count`` consecutive ``sums``, unchanged or as bytes of a
        ``channel``.

        ``channel`` is C that may use ``e``, the index of the sum.
        """
        if self.fixed is None:
            body.line(f"memcpy({to}, {sums}, (size_t)({count}) * sizeof(int32_t));")
            return
        with body.loop("e", count):
            value = self.fixed.byte(f"({sums})[e]", channel)
            body.line(f"({to})[e] = ({type_}){value};")

    def elements(self, index: str) -> list[str]:
        """Return the element ``index`` of each array, as C."""
        arrays = (self.bias, self.factors, self.fractions)
        return [f"{array}[{index}]" for array in arrays if array]

    def arguments(self, channel: str, out: str, pitch: str, ends: str = "to, wide") -> str:
        """Return the arguments of a micro-kernel of bytes; ``channel`` is its first row or column,
        as C.
        """
        arrays = [each for each in (self.bias, self.factors, self.fractions) if each]
        pointers = ", ".join(f"{array} + {channel}" for array in arrays)
        return f"{pointers}, last, (unsigned char *)({out}), {pitch}, {ends}"

    @property
    def parameters(self) -> str:
        """The last parameters of a micro-kernel of bytes, in the order of ``arguments``."""
        names = ["factors", *(["fractions"] if self.fractions else [])]
        arrays = ", ".join(f"const float *restrict {name}" for name in names)
        return TILE_OF_BYTES.replace("ARRAYS", arrays)

    @property
    def names(self) -> str:
        """The names of ``parameters``."""
        return f"bias, factors,{' fractions,' if self.fractions else ''} last, out, pitch, to, wide"

    def scaled(self, sums: str, factor: str, fraction: str) -> str:
        """Return the C of a sum as a float, plus its fraction of a step, times its factor.

        ```
        (REAL(s0_0) + fractions[0]) * factors[0]
        ```
        """
        return f"({sums} + {fraction}) * {factor}" if self.fractions else f"{sums} * {factor}"


def epilogue_of(cx: KernelContext, count: int, extra: np.ndarray | None = None) -> Epilogue:
    """Return the epilogue of ``count`` filters or columns, and declare its constants.

    ``extra`` is added to each sum, to account for the zero point of the left operand.
    """
    declare(cx)
    scaled = requantization(cx, count)
    if scaled is None and extra is None:
        return Epilogue("", "")
    bias = np.rint(bias_steps(cx)).astype(np.int64)
    bias = bias if extra is None else bias + extra
    start = np.zeros(count + spare(), np.int32)
    start[:count] = bias.astype(np.int32)
    name = cx.constant(start, C_TYPES[ir.DataType.INT32])
    if scaled is None:
        return Epilogue(name, "")
    if is_fixed(cx):
        return Epilogue(name, "", fixed=fixed_point(cx, scaled))
    if not machine().pixel_major:
        zero, flip = scaled.zero_and_flip
        cx.body.line(f"static const int32_t last[] = {{ {zero}, {flip} }};")
    factors, fractions = (_padded_floats(cx, each) for each in (scaled.factors, scaled.fractions))
    return Epilogue(name, factors, fractions, is_small=are_small(scaled.factors))


def _padded_floats(cx: KernelContext, array: np.ndarray | None) -> str:
    """Return the name of a constant with ``spare`` zeros at its end; "" for no array."""
    if array is None:
        return ""
    return cx.constant(np.pad(array, (0, spare())), C_TYPES[ir.DataType.FLOAT])


def epilogue_minus_zero_point(
    cx: KernelContext, sums: np.ndarray, flip: int, start: str
) -> Epilogue:
    """Return the epilogue that also subtracts the left operand's zero point times weight ``sums``.

    ``flip`` is added to the zero point. If the zero point is known at run time only, the products
    are computed in an array at ``start``, in scratch space.
    """
    position = input_positions(cx).x_zero
    zero = constant(cx, position)
    if zero is not None or not is_present(cx, position):
        point = flip + (0 if zero is None else int(zero.reshape(-1)[0]))
        return epilogue_of(cx, sums.size, -point * sums)
    declare(cx)
    padded = np.pad(sums.astype(np.int32), (0, spare()))
    padded_sums = cx.constant(padded, C_TYPES[ir.DataType.INT32])
    cx.body.line(f"int32_t *start = (int32_t *)(void *)({start});")
    with cx.body.loop("o", padded.size):
        cx.body.line(f"start[o] = -{padded_sums}[o] * ({zero_text(cx)} + {flip});")
    return Epilogue("start", "")
