"""Operators that depend on an element's position: Trilu, Range, LRN."""

from __future__ import annotations

import math

from smelt.native.kernels.elementwise import combine
from smelt.native.kernels.kernel import (
    ANY,
    FLOAT,
    NUMBER,
    KernelContext,
    kernel,
)
from smelt.native.kernels.nest import index
from smelt.program.instruction import DYNAMIC_RANGE


@kernel("Trilu", kinds=ANY)
def triangle(cx: KernelContext) -> None:
    """Write zeros below the diagonal ``k`` if ``upper``, else above it.

    ```
    y0[n * 12 + i * 4 + j] = j - i >= 0 ? x0[n * 12 + i * 4 + j] : 0;
    ```
    """
    source, output = cx.input(0), cx.output()
    rows, columns = source.shape[-2:]
    sign = ">=" if cx.int("upper") else "<="
    with cx.body.loops(("n", "i", "j"), (math.prod(source.shape[:-2]), rows, columns)):
        at = index((rows * columns, columns, 1), ("n", "i", "j"))
        value = f"j - i {sign} {cx.int('k')} ? {source.name}[{at}] : 0"
        cx.body.line(f"{output.name}[{at}] = {value};")


MOST = 1 << 30
"""The longest Range, which any ``ptrdiff_t`` can count."""


@kernel(DYNAMIC_RANGE, kinds=NUMBER)
def count_to_limit(cx: KernelContext) -> None:
    """Compute the number of elements in double precision, then write the Range."""
    start, delta, limit = (f"{cx.input(i).name}[0]" for i in range(3))
    cx.may_fail()
    cx.body.line(f"const double n = ceil(((double){limit} - (double){start}) / (double){delta});")
    cx.body.line(f"if (!(n <= {MOST}))")
    cx.body.line("    return 1;")
    cx.body.line("const ptrdiff_t count = n > 0 ? (ptrdiff_t)n : 0;")
    cx.define_size(cx.output_shape()[0], "count")
    count_up(cx)


@kernel("Range", kinds=NUMBER)
def count_up(cx: KernelContext) -> None:
    """Write ``start + i * delta`` for each ``i``; a running sum would gather rounding errors."""
    start, delta, output, type_ = cx.input(0), cx.input(1), cx.output(), cx.type(0)
    product = combine("Mul", type_, f"({type_.name})i", f"{delta.name}[0]")
    total = combine("Add", type_, f"{start.name}[0]", f"({product})")
    with cx.body.loop("i", output.size):
        cx.body.line(f"{output.name}[i] = {total};")


@kernel("LRN", kinds=FLOAT)
def local_response(cx: KernelContext) -> None:
    """Write ``x / (bias + alpha / size * sum of squares) ** beta``; the sum is over nearby
    channels.

    ```
    const ptrdiff_t low = c < 2 ? 0 : c - 2, top = c + 3, high = top < 7 ? top : 7;
    float sum = 0;
    for (ptrdiff_t d = low; d < high; ++d)
        sum += x0[(n * 7 + d) * 9 + i] * x0[(n * 7 + d) * 9 + i];
    y0[...] = x0[...] / powf(1.0e+00f + 2.0e-05f * sum, 7.5e-01f);
    ```
    """
    source, output, type_ = cx.input(0), cx.output(), cx.type(0)
    samples, channels, *spatial = source.shape
    inner, size = math.prod(spatial), cx.int("size")
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    alpha, beta = type_.literal(cx.float("alpha") / size), type_.literal(cx.float("beta"))
    x = source.name
    with cx.body.loops(("n", "c", "i"), (samples, channels, inner)):
        cx.body.line(f"const ptrdiff_t low = c < {before} ? 0 : c - {before};")
        cx.body.line(f"const ptrdiff_t top = c + {after + 1};")
        cx.body.line(f"const ptrdiff_t high = top < {channels} ? top : {channels};")
        cx.body.line(f"{type_.name} sum = 0;")
        with cx.body.loop("d", "high", "low"):
            cx.body.line(f"const {type_.name} v = {x}[(n * {channels} + d) * {inner} + i];")
            cx.body.line("sum += v * v;")
        at = f"(n * {channels} + c) * {inner} + i"
        base = f"{type_.literal(cx.float('bias'))} + {alpha} * sum"
        cx.body.line(f"{output.name}[{at}] = {x}[{at}] / pow{type_.f}({base}, {beta});")
