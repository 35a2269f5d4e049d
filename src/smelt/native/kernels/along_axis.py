"""Operators that depend on where an element stands along an axis: arg-reductions, running sums."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from smelt.native.kernels.elementwise import combine
from smelt.native.kernels.kernel import (
    ANY,
    FLOAT,
    NUMBER,
    KernelContext,
    kernel,
)
from smelt.native.kernels.nest import index
from smelt.program.instruction import RANGE_AT_RUN_TIME, RUNNING_AT_RUN_TIME
from smelt.program.run_sizes import if_any, is_empty


@contextmanager
def _rows(cx: KernelContext, axis: int) -> Iterator[tuple[int, str]]:
    """Loops over the rows along ``axis``: their length, and element ``i`` of a row as C."""
    source = cx.input(0)
    shape = source.shape or (1,)
    count, inner = shape[axis], math.prod(shape[axis + 1 :])
    with cx.body.loops(("o", "k"), (cast(int, if_any(math.prod(shape[:axis]), count)), inner)):
        cx.body.line(f"const ptrdiff_t row = {index((count * inner, 1), ('o', 'k'))};")
        yield count, f"row + i * {inner}"


def _find(cx: KernelContext, count: int, at: str, sign: str, *, last: bool) -> None:
    """Declare ``best``, the position of the largest or smallest element; NaN beats all."""
    x, t = cx.input(0).name, cx.type(0)
    cx.body.line(f"{t.name} top = {x}[row];")
    cx.body.line("ptrdiff_t best = 0;")
    with cx.body.loop("i", count, start=1):
        cx.body.line(f"const {t.name} v = {x}[{at}];")
        test = f"v {sign}{'=' if last else ''} top"
        if t.kind == "float":
            test = f"(top == top && ({test} || v != v))" + (" || (v != v)" if last else "")
        with cx.body.block(f"if ({test})"):
            cx.body.line("top = v;")
            cx.body.line("best = i;")


@kernel("ArgMax", "ArgMin", kinds=NUMBER)
def arg_reduce(cx: KernelContext) -> None:
    """The first position of the extreme, or the last if ``select_last_index``."""
    output = cx.output()
    if is_empty(output.shape):
        return
    cx.need_some((cx.shape(0) or (1,))[cx.int("axis")])
    sign = ">" if cx.instruction.op == "ArgMax" else "<"
    shape, axis = cx.shape(0) or (1,), cx.int("axis")
    inner = math.prod(shape[axis + 1 :])
    with _rows(cx, axis) as (count, at):
        _find(cx, count, at, sign, last=bool(cx.int("select_last_index")))
        cx.body.line(f"{output.name}[o * {inner} + k] = best;")


@kernel("Hardmax", kinds=FLOAT)
def hardmax(cx: KernelContext) -> None:
    """1 at the first largest element of each row, 0 elsewhere."""
    output = cx.output()
    if is_empty(output.shape):
        return
    with _rows(cx, cx.int("axis")) as (count, at):
        _find(cx, count, at, ">", last=False)
        with cx.body.loop("i", count):
            cx.body.line(f"{output.name}[{at}] = i == best;")


RUNNING = {"CumSum": ("Add", 0), "CumProd": ("Mul", 1)}


@kernel(*RUNNING, kinds=NUMBER)
def running(cx: KernelContext) -> None:
    """From either end; ``exclusive`` leaves the element itself out."""
    source, output, t = cx.input(0), cx.output(), cx.type(0)
    op, start = RUNNING[cx.instruction.op]
    grown = combine(op, t, "sum", f"{source.name}[at]")
    with _rows(cx, cx.int("axis")) as (count, at):
        cx.body.line(f"{t.name} sum = {start};")
        with cx.body.loop("j", count):
            cx.body.line(f"const ptrdiff_t i = {f'{count - 1} - j' if cx.int('reverse') else 'j'};")
            cx.body.line(f"const ptrdiff_t at = {at};")
            lines = [f"sum = {grown};", f"{output.name}[at] = sum;"]
            for line in reversed(lines) if cx.int("exclusive") else lines:
                cx.body.line(line)


@kernel(RUNNING_AT_RUN_TIME, kinds=NUMBER)
def running_at_run_time(cx: KernelContext) -> None:
    """Three loops, whose lengths follow from the axis; one out of range ends the run."""
    source, axis, output, t = cx.input(0), cx.input(1), cx.output(), cx.type(0)
    op, start = RUNNING[str(cx.instruction.attributes["running"])]
    sizes, body = source.shape or (1,), cx.body
    cx.may_fail()
    body.line(f"const ptrdiff_t size[{len(sizes)}] = {{ {', '.join(map(str, sizes))} }};")
    body.line(f"const int64_t a = {axis.name}[0] + ({axis.name}[0] < 0 ? {len(sizes)} : 0);")
    body.line(f"if (a < 0 || a >= {len(sizes)})")
    body.line("    return 1;")
    body.line("ptrdiff_t outer = 1, inner = 1;")
    with body.loop("d", len(sizes)):
        body.line("outer *= d < a ? size[d] : 1;")
        body.line("inner *= d > a ? size[d] : 1;")
    with body.loop("o", "outer"), body.loop("k", "inner"):
        body.line(f"{t.name} sum = {start};")
        with body.loop("j", "size[a]"):
            body.line(f"const ptrdiff_t i = {'size[a] - 1 - j' if cx.int('reverse') else 'j'};")
            body.line("const ptrdiff_t at = (o * size[a] + i) * inner + k;")
            grown = combine(op, t, "sum", f"{source.name}[at]")
            lines = [f"sum = {grown};", f"{output.name}[at] = sum;"]
            for line in reversed(lines) if cx.int("exclusive") else lines:
                body.line(line)


@kernel("Trilu", kinds=ANY)
def triangle(cx: KernelContext) -> None:
    """Zero below the diagonal ``k`` if ``upper``, else above it."""
    source, output = cx.input(0), cx.output()
    rows, columns = source.shape[-2:]
    sign = ">=" if cx.int("upper") else "<="
    with cx.body.loops(("n", "i", "j"), (math.prod(source.shape[:-2]), rows, columns)):
        at = index((rows * columns, columns, 1), ("n", "i", "j"))
        kept = f"j - i {sign} {cx.int('k')} ? {source.name}[{at}] : 0"
        cx.body.line(f"{output.name}[{at}] = {kept};")


MOST = 1 << 30
"""Elements of a Range at most: those that any ``ptrdiff_t`` counts."""


@kernel(RANGE_AT_RUN_TIME, kinds=NUMBER)
def count_to_limit(cx: KernelContext) -> None:
    """Counts in double precision how many elements there are to be."""
    start, delta, limit = (f"{cx.input(i).name}[0]" for i in range(3))
    cx.may_fail()
    cx.body.line(f"const double n = ceil(((double){limit} - (double){start}) / (double){delta});")
    cx.body.line(f"if (!(n <= {MOST}))")
    cx.body.line("    return 1;")
    cx.body.line("const ptrdiff_t count = n > 0 ? (ptrdiff_t)n : 0;")
    cx.settle(cx.output_shape()[0], "count")
    count_up(cx)


@kernel("Range", kinds=NUMBER)
def count_up(cx: KernelContext) -> None:
    """``start + i * delta``, so that rounding errors do not add up."""
    start, delta, output, t = cx.input(0), cx.input(1), cx.output(), cx.type(0)
    product = combine("Mul", t, f"({t.name})i", f"{delta.name}[0]")
    total = combine("Add", t, f"{start.name}[0]", f"({product})")
    with cx.body.loop("i", output.size):
        cx.body.line(f"{output.name}[i] = {total};")


@kernel("LRN", kinds=FLOAT)
def local_response(cx: KernelContext) -> None:
    """``x / (bias + alpha / size * sum of squares) ** beta`` over neighbouring channels."""
    source, output, t = cx.input(0), cx.output(), cx.type(0)
    samples, channels, *spatial = source.shape
    inner, size = math.prod(spatial), cx.int("size")
    before, after = (size - 1) // 2, size - 1 - (size - 1) // 2
    alpha, beta = t.literal(cx.float("alpha") / size), t.literal(cx.float("beta"))
    x = source.name
    with cx.body.loops(("n", "c", "i"), (samples, channels, inner)):
        cx.body.line(f"const ptrdiff_t low = c < {before} ? 0 : c - {before};")
        cx.body.line(f"const ptrdiff_t top = c + {after + 1};")
        cx.body.line(f"const ptrdiff_t high = top < {channels} ? top : {channels};")
        cx.body.line(f"{t.name} sum = 0;")
        with cx.body.loop("d", "high", "low"):
            cx.body.line(f"const {t.name} v = {x}[(n * {channels} + d) * {inner} + i];")
            cx.body.line("sum += v * v;")
        at = f"(n * {channels} + c) * {inner} + i"
        base = f"{t.literal(cx.float('bias'))} + {alpha} * sum"
        cx.body.line(f"{output.name}[{at}] = {x}[{at}] / pow{t.f}({base}, {beta});")
