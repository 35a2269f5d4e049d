"""Cumulative sums and products from either end; ``exclusive`` leaves out the element itself.

Each result depends on the previous one along the axis. Elements of other rows are computed in
parallel: neighbors if rows lie side by side, else several rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from smelt.native.kernels.elementwise import combine
from smelt.native.kernels.kernel import NUMBER, KernelContext, kernel
from smelt.program.instruction import DYNAMIC_CUMULATIVE
from smelt.program.run_sizes import same, zero_if_empty

RUNNING = {"CumSum": ("Add", 0), "CumProd": ("Mul", 1)}
ROWS = 8
"""The rows that are computed at a time: during the four cycles of an addition, others start."""


@kernel(*RUNNING, kinds=NUMBER)
def running(cx: KernelContext) -> None:
    """Write the running sums or products along ``axis``."""
    shape, axis = cx.shape(0), cx.int("axis")
    outer, count, inner = math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
    if same(inner, 1):
        _emit_rows(cx, outer, count)
        return
    _emit_columns(cx, (cast(int, zero_if_empty(outer, count)), count, inner))


def _emit_rows(cx: KernelContext, outer: int, count: int) -> None:
    """Write ``ROWS`` contiguous rows at a time, then the remaining ones singly.

    ```
    for (ptrdiff_t r = 0; r < 8; ++r) {
        const ptrdiff_t at = r * 6 + i;
        sum[r] = sum[r] + from[at];
        to[at] = sum[r];
    ```
    """
    source, output, type_, body = cx.input(0).name, cx.output().name, cx.type(0), cx.body
    op, start = RUNNING[cx.instruction.op]
    body.line("ptrdiff_t o = 0;")
    for rows in (ROWS, 1):
        if isinstance(outer, int) and (outer < rows or (rows == 1 and outer % ROWS == 0)):
            continue  # GCC warns that a loop that never runs leaves the array
        with body.block(f"for (; o + {rows} <= {outer}; o += {rows})"):
            body.line(f"const {type_.name} *from = {source} + o * {count};")
            body.line(f"{type_.name} *to = {output} + o * {count};")
            body.line(f"{type_.name} sum[{rows}];")
            with body.loop("r", rows):
                body.line(f"sum[r] = {start};")
            with _axis_loop(cx, count), body.loop("r", rows):
                body.line(f"const ptrdiff_t at = r * {count} + i;")
                accumulation = f"sum[r] = {combine(op, type_, 'sum[r]', 'from[at]')};"
                _emit_step(cx, accumulation, "to[at] = sum[r];")


def _emit_columns(cx: KernelContext, sizes: tuple[int, int, int]) -> None:
    """Write each row of results as the previous row combined with a row of the input.

    ```
    for (ptrdiff_t j = 1; j < 7; ++j)
        for (ptrdiff_t k = 0; k < 2; ++k)
            y[at + k] = y[before + k] + x[at + k];
    ```
    """
    (outer, count, inner), body, type_ = sizes, cx.body, cx.type(0)
    op, start = RUNNING[cx.instruction.op]
    first, step = (f"{count} - 1", "(-1)") if cx.int("reverse") else ("0", "1")
    with body.loop("o", outer):
        body.line(f"const {type_.name} *x = {cx.input(0).name} + o * {count * inner};")
        body.line(f"{type_.name} *y = {cx.output().name} + o * {count * inner};")
        body.line(f"const ptrdiff_t first = ({first}) * {inner};")
        with body.loop("k", inner):
            value = combine(op, type_, f"({type_.name}){start}", "x[first + k]")
            body.line(f"y[first + k] = {start if cx.int('exclusive') else value};")
        with body.loop("j", count, start=1):
            body.line(f"const ptrdiff_t at = first + j * {step} * {inner};")
            body.line(f"const ptrdiff_t before = at - {step} * {inner};")
            read = "before" if cx.int("exclusive") else "at"
            with body.loop("k", inner):
                body.line(f"y[at + k] = {combine(op, type_, 'y[before + k]', f'x[{read} + k]')};")


@contextmanager
def _axis_loop(cx: KernelContext, count: int | str) -> Iterator[None]:
    """Write a loop over the positions ``i`` of the axis, from the end if ``reverse``."""
    with cx.body.loop("j", count):
        cx.body.line(f"const ptrdiff_t i = {f'{count} - 1 - j' if cx.int('reverse') else 'j'};")
        yield


def _emit_step(cx: KernelContext, accumulation: str, stored: str) -> None:
    """Write the accumulation and the store, the store first if ``exclusive``."""
    for line in (stored, accumulation) if cx.int("exclusive") else (accumulation, stored):
        cx.body.line(line)


@kernel(DYNAMIC_CUMULATIVE, kinds=NUMBER)
def dynamic_running(cx: KernelContext) -> None:
    """Write three loops whose lengths follow from the axis; an axis out of range ends the run.

    ```
    const int64_t a = x1[0] + (x1[0] < 0 ? 3 : 0);
    if (a < 0 || a >= 3)
        return 1;
    ...
    const ptrdiff_t at = (o * size[a] + i) * inner + k;
    sum = sum + x0[at];
    ```
    """
    source, axis, output, type_ = cx.input(0), cx.input(1), cx.output(), cx.type(0)
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
        body.line(f"{type_.name} sum = {start};")
        with _axis_loop(cx, "size[a]"):
            body.line("const ptrdiff_t at = (o * size[a] + i) * inner + k;")
            accumulation = f"sum = {combine(op, type_, 'sum', f'{source.name}[at]')};"
            _emit_step(cx, accumulation, f"{output.name}[at] = sum;")
