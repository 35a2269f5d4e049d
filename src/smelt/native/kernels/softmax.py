"""Softmax and LogSoftmax: a few passes over each row of a tensor."""

from __future__ import annotations

import math
from typing import cast

from smelt.native.kernels import softmax_short, softmax_vectors
from smelt.native.kernels.extremes import extreme_of
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.lane_math import in_lanes
from smelt.native.kernels.nest import index
from smelt.native.kernels.row_sums import call_when, sum_of
from smelt.native.kernels.vector import PRELUDE
from smelt.native.types import CType
from smelt.program.run_sizes import same, zero_if_empty
from smelt.program.storage import Needs

COLUMNS = 64
"""The rows that are computed together if their elements are not contiguous. Their sums and maxima
take half a kilobyte of stack."""


def _in_place(instance: Instance) -> Needs:
    """Return needs by which the result may overwrite the input."""
    return Needs(in_place=(0,))


@kernel("Softmax", "LogSoftmax", needs=_in_place, shared=True)
def softmax(cx: KernelContext) -> None:
    """Write Softmax or LogSoftmax, relative to the largest element of each row, so nothing
    overflows.
    """
    shape, axis = cx.input(0).shape, cx.int("axis")
    count = shape[axis] if shape else 1
    inner = math.prod(shape[axis + 1 :])
    outer = cast(int, zero_if_empty(math.prod(shape[:axis]), count))
    if same(inner, 1):
        _emit_softmax_rows(cx, outer, count)
        return
    _emit_softmax_columns(cx, outer, count, inner)


def _emit_softmax_columns(cx: KernelContext, outer: int, count: int, inner: int) -> None:
    """Write C for rows whose elements are ``inner`` apart.

    ``COLUMNS`` rows are computed together, so each inner loop is over contiguous elements.

    ```
    top[j] = v > top[j] ? v : top[j];
    ...
    const float e = lane_exp(x[i * 2 + j] - top[j]);
    y[i * 2 + j] = e, sum[j] += e;
    ...
    y[i * 2 + j] = y[i * 2 + j] * sum[j];
    ```
    """
    source, output, t, body = cx.input(0), cx.output(), cx.type(0), cx.body
    width = min(inner, COLUMNS) if isinstance(inner, int) else COLUMNS
    shared = body.widest((outer, -(-inner // width))) if body.parts > 1 else None
    outer_loop, inner_loop = (body.shared_loop if shared == dim else body.loop for dim in (0, 1))
    with outer_loop("o", outer), inner_loop("k", inner, 0, width):
        offset = index((count * inner, 1), ("o", "k"))
        body.line(f"const {t.name} *x = {source.name} + {offset};")
        body.line(f"{t.name} *y = {output.name} + {offset};")
        body.line(f"{t.name} top[{width}], sum[{width}];")
        end = width if isinstance(inner, int) and inner % width == 0 else "columns"
        if end != width:
            body.line(f"const ptrdiff_t left = {inner} - k;")
            body.line(f"const ptrdiff_t columns = left < {width} ? left : {width};")
        with body.loop("j", end):
            body.line("top[j] = x[j], sum[j] = 0;")
        with body.loop("i", count, start=1), body.loop("j", end):
            body.line(f"const {t.name} v = x[i * {inner} + j];")
            body.line("top[j] = v > top[j] ? v : top[j];")
        with body.loop("i", count), body.loop("j", end):
            e = in_lanes(cx, f"exp{t.f}(x[i * {inner} + j] - top[j])")
            body.line(f"const {t.name} e = {e};")
            if cx.instruction.op == "Softmax":
                body.line(f"y[i * {inner} + j] = e;")
            body.line("sum[j] += e;")
        with body.loop("j", end):
            scale = "1 / sum[j]" if cx.instruction.op == "Softmax" else f"log{t.f}(sum[j])"
            body.line(f"sum[j] = {scale};")
        with body.loop("i", count), body.loop("j", end):
            at = f"[i * {inner} + j]"
            scaled = (
                f"y{at} * sum[j]" if cx.instruction.op == "Softmax" else f"x{at} - top[j] - sum[j]"
            )
            body.line(f"y{at} = {scaled};")


def _emit_softmax_rows(cx: KernelContext, outer: int, count: int) -> None:
    """Write C for contiguous rows, by vectors where the CPU has them.

    ```
    #if WHEN
    … short rows, many at a time
    #else
    for (ptrdiff_t o = 0; o < 4; ++o) {
        … one row
    }
    #endif
    ```
    """
    source, output, t, body = cx.input(0), cx.output(), cx.type(0), cx.body
    if softmax_short.supports(t, count):
        softmax_short.declare(cx)
        body.line(f"#if {softmax_vectors.WHEN}")
        softmax_short.emit(cx, outer, count)
        body.line("#else")
    with body.shared_loop("o", outer):
        body.line(f"const {t.name} *x = {source.name} + o * {count};")
        body.line(f"{t.name} *y = {output.name} + o * {count};")
        if softmax_vectors.supports(t, count):
            body.line(f"#if {softmax_vectors.WHEN}")
            softmax_vectors.emit(cx, count)
            body.line("#else")
            _emit_row(cx, count, f"!({softmax_vectors.WHEN})")
            body.line("#endif")
        elif softmax_short.supports(t, count):
            _emit_row(cx, count, f"!({softmax_vectors.WHEN})")
        else:
            _emit_row(cx, count)
    if softmax_short.supports(t, count):
        body.line("#endif")


def _emit_row(cx: KernelContext, count: int, when: str = "") -> None:
    """Write C for a row ``x`` and its result ``y``, which may be ``x``.

    ``when`` is the preprocessor condition under which the C is compiled.

    ```
    const float top = largest_float(x, 70);
    powers_float(x, 70, top, y);
    const float share = 1 / sum_float(y, 70, 0);
    for (ptrdiff_t i = 0; i < 70; ++i)
        y[i] *= share;
    ```
    """
    t, body = cx.type(0), cx.body
    body.line(f"const {t.name} top = {extreme_of(cx, t, '>')}(x, {count});")
    if cx.instruction.op == "Softmax":
        body.line(f"{_powers(cx, t, when)}(x, {count}, top, y);")
        body.line(f"const {t.name} sum = {sum_of(cx, t, 'v', 'sum', when)}(y, {count}, 0);")
        # The sum is 1 or more, so its inverse is as good a factor.
        body.line(f"const {t.name} share = 1 / sum;")
        with body.loop("i", count):
            body.line("y[i] *= share;")
        return
    total = _sum_of_powers(cx, t, when)
    body.line(f"const {t.name} sum = log{t.f}({total}(x, {count}, top));")
    with body.loop("i", count):
        body.line("y[i] = x[i] - top - sum;")


def _powers(cx: KernelContext, type_: CType, when: str) -> str:
    """Return the name of a support function ``(x, n, c, y)`` that computes ``y[i] = exp(x[i] -
    c)``.

    It is ``NO_INLINE``, because clang 14 does not vectorize it where ``c`` is computed.
    """
    t, power = type_.name, in_lanes(cx, f"exp{type_.f}(x[i] - c)")
    cx.call("LANES", PRELUDE)
    text = f"""static NO_INLINE void powers_{t}(const {t} *restrict x, ptrdiff_t n, {t} c,
    {t} *restrict y)
{{
    for (ptrdiff_t i = 0; i < n; ++i)
        y[i] = {power};
}}
"""
    return call_when(cx, f"powers_{t}", text, when)


def _sum_of_powers(cx: KernelContext, type_: CType, when: str) -> str:
    """Return the name of a support function ``(x, n, c)`` that returns the sum of ``exp(x[i] -
    c)``.

    The exponentials are first stored in an array, because compilers do not vectorize them in a loop
    that adds.
    """
    t, count = type_.name, 512 // type_.size
    total = sum_of(cx, type_, "v", "sum", when)
    text = f"""static {t} sum_exp_{t}(const {t} *x, ptrdiff_t n, {t} c)
{{
    {t} e[{count}], sum = 0;
    for (ptrdiff_t b = 0; b < n; b += {count}) {{
        const ptrdiff_t m = n - b < {count} ? n - b : {count};
        {_powers(cx, type_, when)}(x + b, m, c, e);
        sum += {total}(e, m, 0);
    }}
    return sum;
}}
"""
    return call_when(cx, f"sum_exp_{t}", text, when)
