"""ArgMax, ArgMin and Hardmax: the position of a row's extreme; NaN beats all numbers.

In contiguous rows, vectors search the extreme and then its position. Strided and short rows are
processed many at a time, one per vector lane.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

from smelt.native.kernels.extremes import extreme_of
from smelt.native.kernels.kernel import FLOAT, NUMBER, KernelContext, kernel
from smelt.native.kernels.nest import index
from smelt.native.kernels.vector import PRELUDE
from smelt.native.types import CType
from smelt.program.run_sizes import Size, same, surely_below, zero_if_empty

FEW = 16
"""The shortest row for which one loop for the extreme and one for its position pay."""

BYTES_TOGETHER = 512
"""The bytes of values, and of positions, of the rows that are processed together."""

_PLACE = """static NO_INLINE ptrdiff_t NAME(const @t *x, ptrdiff_t n, @t top)
{
    ptrdiff_t i = 0;
    if (top != top) {
        while (i < n && x[i] == x[i])
            ++i;
        return i;
    }
    for (; i + 64 <= n; i += 64) {
        int any = 0;
        for (ptrdiff_t j = 0; j < 64; ++j)
            any |= x[i + j] == top;
        if (any)
            break;
    }
    while (i < n && x[i] != top)
        ++i;
    return i;
}
"""


@contextmanager
def _row_loops(cx: KernelContext, axis: int) -> Iterator[tuple[int, int]]:
    """Write loops over the rows along ``axis``; yield the length of a row and its stride.

    Element ``i`` of a row is at ``row + i * stride``.

    ```
    for (ptrdiff_t o = 0; o < 4; ++o) {
        for (ptrdiff_t k = 0; k < 3; ++k) {
            const ptrdiff_t row = o * 15 + k;
    ```
    """
    source = cx.input(0)
    shape = source.shape
    count, inner = shape[axis], math.prod(shape[axis + 1 :])
    with cx.body.loops(
        ("o", "k"), (cast(int, zero_if_empty(math.prod(shape[:axis]), count)), inner)
    ):
        cx.body.line(f"const ptrdiff_t row = {index((count * inner, 1), ('o', 'k'))};")
        yield count, inner


def _find(cx: KernelContext, count: int, stride: int, sign: str, *, last: bool) -> None:
    """Write C that sets ``best`` to the position of the row's extreme; NaN beats all numbers.

    Contiguous rows of floats are searched twice by vectors: for the extreme, then for the first
    element that equals it. This does not give the ``last`` position.
    """
    x, type_, body = cx.input(0).name, cx.type(0), cx.body
    is_contiguous = same(stride, 1)
    if is_contiguous and not last and type_.kind == "float" and not surely_below(count, FEW):
        top = f"{extreme_of(cx, type_, sign)}({x} + row, {count})"
        body.line(
            f"const ptrdiff_t best = {_position_function(cx, type_)}({x} + row, {count}, {top});"
        )
        return
    body.line(f"{type_.name} top = {x}[row];")
    body.line("ptrdiff_t best = 0;")
    with body.loop("i", count, start=1):
        body.line(f"const {type_.name} v = {x}[row + i * {stride}];")
        body.line(f"const int better = {_better(type_, sign, 'top', last=last)};")
        body.line("top = better ? v : top;")
        body.line("best = better ? i : best;")


def _better(type_: CType, sign: str, top: str, *, last: bool) -> str:
    """Return branch-free C that is true if ``v`` replaces the extreme ``top``.

    The first NaN replaces any number, and no number replaces NaN. With ``last``, an equal value and
    another NaN replace ``top``, too.
    """
    test = f"v {sign}{'=' if last else ''} {top}"
    if type_.kind == "float":
        test = f"((({top} == {top}) & (({test}) | (v != v))){' | (v != v)' if last else ''})"
    return test


@kernel("ArgMax", "ArgMin", kinds=NUMBER)
def arg_reduce(cx: KernelContext) -> None:
    """Write the first position of the extreme, or the last if ``select_last_index``."""
    output = cx.output()
    cx.require_nonempty(cx.shape(0)[cx.int("axis")])
    sign = ">" if cx.instruction.op == "ArgMax" else "<"
    shape, axis, last = cx.shape(0), cx.int("axis"), bool(cx.int("select_last_index"))
    count, inner = shape[axis], math.prod(shape[axis + 1 :])
    outer = cast(int, zero_if_empty(math.prod(shape[:axis]), count))
    if not same(inner, 1):
        _emit_rows_together(cx, (outer, count, inner), sign, last=last)
        return
    if surely_below(count, FEW):
        _emit_rows_together(cx, (1, count, outer), sign, last=last, row_stride=count)
        return
    with _row_loops(cx, axis) as (_, stride):
        _find(cx, count, stride, sign, last=last)
        cx.body.line(f"{output.name}[o * {inner} + k] = best;")


def _position_function(cx: KernelContext, type_: CType) -> str:
    """Return the name of a function of ``(x, n, top)``: the position of the first element equal to
    ``top``, which may be NaN.
    """
    name = f"place_in_{type_.name}"
    return cx.call(name, _PLACE.replace("NAME", name).replace("@t", type_.name))


def _emit_rows_together(
    cx: KernelContext, sizes: tuple[int, int, int], sign: str, *, last: bool, row_stride: int = 1
) -> None:
    """Write loops that process ``width`` rows together, so that the inner loop runs over rows.

    ``sizes`` are the loops around rows, the elements of a row, and the number of rows. Rows are
    ``row_stride`` elements apart. ``top`` are the best values so far and ``best`` their positions:

    ```
    for (ptrdiff_t j = 0; j < columns; ++j) {
        const float v = row[j];
        const float t = top[j];
        const int better = v > t;
        top[j] = better ? v : t;
        best[j] = better ? (int32_t)i : best[j];
    }
    ```
    """
    (outer, count, inner), body, type_ = sizes, cx.body, cx.type(0)
    source, output, width = cx.input(0).name, cx.output().name, BYTES_TOGETHER // max(type_.size, 4)
    cx.call("LANES", PRELUDE)
    index_type = (
        "ptrdiff_t" if type_.size == 8 or isinstance(cast(object, count), Size) else "int32_t"
    )
    with body.loop("o", outer), body.loop("k", inner, step=width):
        body.line(f"const {type_.name} *from = {source} + o * {count * inner} + k * {row_stride};")
        body.line(f"const ptrdiff_t left = {inner} - k, columns = left < {width} ? left : {width};")
        body.line(f"{type_.name} top[{width}];")
        body.line(f"{index_type} best[{width}];")
        with body.loop("j", "columns"):
            body.line(f"top[j] = from[j * {row_stride}], best[j] = 0;")
        with body.loop("i", count, start=1):
            body.line(
                f"const {type_.name} *row = from + i * {inner if same(row_stride, 1) else 1};"
            )
            numbers = f"row[j * {row_stride}]"
            if type_.name == "float" and not same(row_stride, 1):
                numbers = "row_values[j]"
                _copy_strided_row(cx, width, row_stride)
            with body.loop("j", "columns"):
                body.line(f"const {type_.name} v = {numbers};")
                body.line(f"const {type_.name} t = top[j];")
                body.line(f"const int better = {_better(type_, sign, 't', last=last)};")
                body.line("top[j] = better ? v : t;")
                body.line(f"best[j] = better ? ({index_type})i : best[j];")
        with body.loop("j", "columns"):
            body.line(f"{output}[o * {inner} + k + j] = best[j];")


def _copy_strided_row(cx: KernelContext, width: int, row_stride: int) -> None:
    """Write the copy of element ``i`` of each row into ``row_values``, one number after the other.

    gcc 12 would gather these numbers into vectors, which takes ten times as long.
    """
    cx.body.line(f"float row_values[{width}];")
    with cx.body.loop("j", "columns"):
        cx.body.line(f"float one = row[j * {row_stride}];")
        cx.body.line("KEEP_IN_REGISTER(one);")
        cx.body.line("row_values[j] = one;")


@kernel("Hardmax", kinds=FLOAT)
def hardmax(cx: KernelContext) -> None:
    """Write 1 at the first largest element of each row, 0 elsewhere."""
    output = cx.output()
    with _row_loops(cx, cx.int("axis")) as (count, stride):
        _find(cx, count, stride, ">", last=False)
        with cx.body.loop("i", count):
            cx.body.line(f"{output.name}[row + i * {stride}] = 0;")
        cx.body.line(f"{output.name}[row + best * {stride}] = 1;")
