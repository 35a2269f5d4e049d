"""QuantizeLinear and DequantizeLinear in one loop, with one scale per tensor or per axis index."""

from __future__ import annotations

import math

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.quantized.operands import SIGNS
from smelt.native.kernels.quantized.quantize_vectors import RUN, quantize_run
from smelt.native.kernels.quantized.rounded import saturated
from smelt.native.types import C_TYPES
from smelt.program.run_sizes import lowest

FEWEST = 16
"""The fewest elements per scale for which vectors pay."""


def _refuse(instance: Instance) -> str | None:
    """Return why the instruction is refused, None if it is supported."""
    slots, step = instance.program.slots, instance.instruction
    x, y = slots[step.inputs[0]], slots[step.outputs[0]]
    floats, integers = (x, y) if step.op == "QuantizeLinear" else (y, x)
    scale, zero = instance.slot(1), instance.slot(2)
    if C_TYPES[floats.dtype].name != "float" or C_TYPES[integers.dtype].kind != "int":
        return "a type other than float"
    if C_TYPES[integers.dtype].size > 2 and step.op == "QuantizeLinear":
        return "integers of more than 16 bits"
    if C_TYPES[integers.dtype].computed is not None:
        return "integers of less than a byte"
    if scale is None or C_TYPES[scale.dtype].name != "float":
        return "scales of another type than float"
    if zero is not None and (zero.size != scale.size or zero.dtype != integers.dtype):
        return "zero points that do not fit the scales"
    return "scales of blocks" if len(scale.shape) > 1 else None


def _segments(instance: Instance) -> tuple[int, int, int]:
    """Return ``(outer, scales, inner)``: ``inner`` consecutive elements share a scale."""
    shape, scales = instance.shape(0), instance.shape(1)
    if math.prod(scales) == 1:
        return 1, 1, math.prod(shape)
    axis = instance.int("axis") % len(shape)
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _emit(cx: KernelContext, text: str, vectorized: str = "") -> None:
    """Write loops that store ``text`` for each element; ``scale`` and ``zero`` are declared.

    ``vectorized`` names a C function that computes the first elements of a segment in vectors,
    and returns their number. It computes unsigned bytes: for signed ones, 128 is added to the zero
    point, and the sign bits are flipped.

    ```
    const float scale = x1[s];
    const int32_t zero = x2[s];
    for (ptrdiff_t from = 0; from < 5000; from += 4096) {
        for (ptrdiff_t i = 0; i < n; ++i)
            y0[first + i] = (float)(x0[first + i] - zero) * scale;
    ```
    """
    source, output, scale, zero = cx.input(0), cx.output(), cx.input(1), cx.optional(2)
    outer, scales, inner = _segments(cx)
    if output.size == 0:
        return
    with cx.body.loops(("o", "s"), (outer, scales)):
        cx.body.line(f"const float scale = {scale.name}[s];")
        cx.body.line(f"const int32_t zero = {f'{zero.name}[s]' if zero else '0'};")
        if vectorized:
            offset, sign_bits = (128, SIGNS) if output.type.signed else (0, 0)
            cx.body.line(f"const int32_t last[] = {{ zero + {offset}, {sign_bits} }};")
        with cx.body.shared_loop("from", inner, step=RUN):
            cx.body.line(f"const ptrdiff_t n = {inner} - from < {RUN} ? {inner} - from : {RUN};")
            cx.body.line(f"const ptrdiff_t first = (o * {scales} + s) * {inner} + from;")
            start = "0"
            if vectorized:
                to = f"(unsigned char *)({output.name} + first)"
                start = f"{vectorized}({source.name} + first, n, scale, last, {to})"
            with cx.body.loop("i", "n", start):
                value = text.replace("VALUE", f"{source.name}[first + i]")
                cx.body.line(f"{output.name}[first + i] = {value};")
        cx.body.line("(void)zero;")


@kernel("QuantizeLinear", kinds=frozenset({"float"}), refuse=_refuse, shared=True)
def quantize(cx: KernelContext) -> None:
    """Write ``x / scale`` rounded to nearest even, plus the zero point, saturated to the result
    type.
    """
    type_ = cx.output().type
    vectorized = quantize_run(cx) if type_.size == 1 and lowest(_segments(cx)[2]) >= FEWEST else ""
    _emit(cx, saturated(cx, "VALUE / scale", "zero", type_), vectorized)


@kernel("DequantizeLinear", kinds=frozenset({"int"}), refuse=_refuse, shared=True)
def dequantize(cx: KernelContext) -> None:
    """Write ``(x - zero point) * scale`` for each element."""
    _emit(cx, "(float)(VALUE - zero) * scale")
