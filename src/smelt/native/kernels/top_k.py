"""TopK: the largest or smallest elements along an axis.

If k is small, a sorted list has the best elements so far: n * k steps for a row in the worst order,
about n for a random one. If k is large, the whole row is sorted.
"""

from __future__ import annotations

import math
from typing import cast

import onnx_ir as ir

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import NUMBER, KernelContext, kernel
from smelt.native.kernels.sorted_places import sort_row
from smelt.native.types import C_TYPES
from smelt.program.instruction import DYNAMIC_TOP_K
from smelt.program.run_sizes import same, zero_if_empty
from smelt.program.storage import Needs


@kernel(DYNAMIC_TOP_K, kinds=NUMBER)
def dynamic_top_k(cx: KernelContext) -> None:
    """Write a check that the second input is the declared k, then the TopK; fail if rows are
    shorter.
    """
    axis, count = cx.int("axis"), cx.input(1)
    cx.may_fail()
    cx.body.line(f"const int64_t k = {count.name}[0];")
    cx.body.line(f"if (k < 0 || k > {cx.shape(0)[axis]})")
    cx.body.line("    return 1;")
    cx.define_size(cx.output_shape()[axis], "k")
    top_k(cx)


def _sorts(instance: Instance) -> bool:
    """True if a list takes more steps than a sort for a random row.

    A list of k takes about k / 2 steps for each element that enters it: k + k log(n / k) of n in
    random order. A sort takes about 4 n log2(n) steps of that length.
    """
    count = cast(object, instance.shape(0)[instance.int("axis")])
    selected = cast(object, instance.output_shape()[instance.int("axis")])
    if not isinstance(count, int) or not isinstance(selected, int) or selected < 2:
        return False
    listed = selected * selected * (1 + math.log(count / selected)) / 2
    return listed > 4 * count * math.log2(count)


def _needs(instance: Instance) -> Needs:
    """Return the scratch space of a sort: the indices of a row, twice."""
    if not _sorts(instance):
        return Needs()
    return Needs(workspace=2 * 8 * instance.shape(0)[instance.int("axis")])


def _sort(cx: KernelContext, outer: int, inner: int) -> None:
    """Write the sort of each row."""
    source, values, indices, type_ = cx.input(0), cx.output(0), cx.output(1), cx.type(0)
    count, selected = source.shape[cx.int("axis")], values.shape[cx.int("axis")]
    name = sort_row(cx, _is_first(cx, "a", "b"))
    scratch = cx.scratch(C_TYPES[ir.DataType.INT64])
    with cx.body.loops(("o", "j"), (outer, inner)):
        cx.body.line(f"const {type_.name} *const row = {source.name} + o * {count * inner} + j;")
        best = f"{name}(row, {inner}, {count}, {scratch}, {scratch} + {count})"
        cx.body.line(f"const int64_t *const best = {best};")
        with cx.body.loop("i", selected):
            at = f"o * {selected * inner} + i * {inner} + j"
            cx.body.line(f"{indices.name}[{at}] = best[i];")
            cx.body.line(f"{values.name}[{at}] = row[best[i] * {inner}];")


@kernel("TopK", kinds=NUMBER, needs=_needs)
def top_k(cx: KernelContext) -> None:
    """Write the list of the best elements of each row: their indices are in the second output.

    The values are read at the end.

    ```
    const float v = row[i];
    if (found == 5 && !(v > row[best[4]]))
        continue;
    ptrdiff_t at = found < 5 ? found++ : 4;
    while (at > 0 && v > row[best[at - 1]])
        best[at] = best[at - 1], --at;
    best[at] = i;
    ```
    """
    source, values, indices, type_ = cx.input(0), cx.output(0), cx.output(1), cx.type(0)
    axis = cx.int("axis")
    count, selected = source.shape[axis], values.shape[axis]
    outer, inner = math.prod(source.shape[:axis]), math.prod(source.shape[axis + 1 :])
    if _sorts(cx):
        _sort(cx, outer, inner)
        return
    body = cx.body
    if same(inner, 1):
        with body.loop("o", cast(int, zero_if_empty(outer, selected))):
            _select_adjacent(cx, count, selected)
        return
    with body.loops(("o", "j"), (cast(int, zero_if_empty(outer, selected)), inner)):
        body.line(f"const {type_.name} *const row = {source.name} + o * {count * inner} + j;")
        body.line(f"{indices.type.name} *const best = {indices.name} + o * {selected * inner} + j;")
        body.line("ptrdiff_t found = 0;")
        with body.loop("i", count):
            body.line(f"const {type_.name} v = row[i * {inner}];")
            worst = f"best[{(selected - 1) * inner}]"
            is_before = _is_first(cx, "v", f"row[{worst} * {inner}]")
            body.line(f"if (found == {selected} && !({is_before}))")
            body.line("    continue;")
            body.line(f"ptrdiff_t at = found < {selected} ? found++ : {selected - 1};")
            previous = f"best[(at - 1) * {inner}]"
            test = _is_first(cx, "v", f"row[{previous} * {inner}]")
            with body.block(f"while (at > 0 && ({test}))"):
                body.line(f"best[at * {inner}] = {previous};")
                body.line("--at;")
            body.line(f"best[at * {inner}] = i;")
        with body.loop("i", selected):
            to = f"{values.name}[o * {selected * inner} + i * {inner} + j]"
            body.line(f"{to} = row[best[i * {inner}] * {inner}];")


BLOCK = 32
"""The elements that are compared with the last element of the list at once."""

SHIFTED = 16
"""The longest list into which elements are inserted by linear search."""


def _select_adjacent(cx: KernelContext, count: int, selected: int) -> None:
    """Write the list for a contiguous row; indices and values are in the outputs.

    ```
    while (at > 0 && v > list[at - 1])
        list[at] = list[at - 1], best[at] = best[at - 1], --at;
    list[at] = v, best[at] = i;
    ```
    """
    source, values, indices = cx.input(0), cx.output(0), cx.output(1)
    type_, body = cx.type(0), cx.body
    body.line(f"const {type_.name} *const row = {source.name} + o * {count};")
    body.line(f"{type_.name} *const list = {values.name} + o * {selected};")
    body.line(f"{indices.type.name} *const best = {indices.name} + o * {selected};")
    body.line("ptrdiff_t found = 0;")
    with body.loop("b", count, step=BLOCK):
        body.line(f"const ptrdiff_t n = {count} - b < {BLOCK} ? {count} - b : {BLOCK};")
        with body.block(f"if (found == {selected} && n == {BLOCK})"):
            body.line(f"const {type_.name} last = list[{selected - 1}];")
            body.line("int any = 0;")
            with body.loop("l", BLOCK):
                order = "<=" if cx.int("largest") else ">="
                body.line(f"any |= !(row[b + l] {order} last);")  # true for NaN, too
            body.line("if (!any)")
            body.line("    continue;")
        with body.loop("i", "b + n", "b"):
            body.line(f"const {type_.name} v = row[i];")
            body.line(
                f"if (found == {selected} && !({_is_first(cx, 'v', f'list[{selected - 1}]')}))"
            )
            body.line("    continue;")
            body.line(f"ptrdiff_t at = found < {selected} ? found++ : {selected - 1};")
            if isinstance(selected, int) and selected <= SHIFTED:
                with body.block(f"while (at > 0 && ({_is_first(cx, 'v', 'list[at - 1]')}))"):
                    body.line("list[at] = list[at - 1];")
                    body.line("best[at] = best[at - 1];")
                    body.line("--at;")
            else:
                _make_room(cx)
            body.line("list[at] = v;")
            body.line("best[at] = i;")


def _make_room(cx: KernelContext) -> None:
    """Write a binary search for the index ``at`` of ``v``, and the move of the later elements.

    ```
    while (low < high) {
        const ptrdiff_t middle = (low + high) / 2;
        if (v > list[middle]) high = middle; else low = middle + 1;
    }
    memmove(list + low + 1, list + low, 4 * (size_t)(at - low));
    ```
    """
    body, element = cx.body, cx.type(0).size
    body.line("ptrdiff_t low = 0, high = at;")
    with body.block("while (low < high)"):
        body.line("const ptrdiff_t middle = (low + high) / 2;")
        body.line(f"if ({_is_first(cx, 'v', 'list[middle]')})")
        body.line("    high = middle;")
        body.line("else")
        body.line("    low = middle + 1;")
    for name, size in (("list", element), ("best", 8)):
        body.line(f"memmove({name} + low + 1, {name} + low, {size} * (size_t)(at - low));")
    body.line("at = low;")


def _is_first(cx: KernelContext, first: str, second: str) -> str:
    """Return C that is true if ``first`` goes before ``second``, which has the smaller index."""
    if not cx.int("largest"):
        nan = (
            f" || ({second} != {second} && {first} == {first})"
            if cx.type(0).kind == "float"
            else ""
        )
        return f"{first} < {second}{nan}"
    nan = f" || ({first} != {first} && {second} == {second})" if cx.type(0).kind == "float" else ""
    return f"{first} > {second}{nan}"
