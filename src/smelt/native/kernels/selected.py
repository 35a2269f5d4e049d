"""Operators with a run-time result size: NonZero, Compress, Unique, NonMaxSuppression; and BitCast.

If the size of the result is declared as a number, a run must find exactly as many elements. If it
is declared as a name with an upper bound, a run may find at most so many. Else the run ends with an
error. The sort is a heapsort: it needs no further memory and no recursion, and takes n log n steps
for any input.
"""

from __future__ import annotations

import math

import onnx_ir as ir

from smelt.native.emit.writer import Writer
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import ANY, FLOAT, KernelContext, as_bytes, kernel
from smelt.native.kernels.nest import index
from smelt.native.kernels.operand import Operand
from smelt.native.types import C_TYPES
from smelt.program.run_sizes import highest, same, smaller
from smelt.program.storage import Needs

INT64 = C_TYPES[ir.DataType.INT64]


@kernel("NonZero", kinds=ANY)
def non_zero(cx: KernelContext) -> None:
    """Write a count of the nonzero elements, then their indices; those of each dim are
    contiguous."""
    source, output, body = cx.input(0), cx.output(), cx.body
    rank, size = output.shape
    names = [f"i{dim}" for dim in range(len(source.shape))]
    body.line("ptrdiff_t n = 0;")
    with body.loops(names, source.shape):
        body.line(f"n += {source.access().at(names)} != 0;")
    cx.define_size(size, "n")
    body.line("n = 0;")
    with body.loops(names, source.shape), body.block(f"if ({source.access().at(names)} != 0)"):
        for dim in range(rank):
            body.line(f"{output.name}[{dim * size} + n] = {names[dim]};")
        body.line("++n;")


@kernel("Compress", kinds=ANY)
def compress(cx: KernelContext) -> None:
    """Write a count of the selected slices, then copies of them.

    A condition shorter than the axis selects nothing beyond its end.
    """
    operand, condition, output = cx.input(0), cx.input(1), cx.output()
    axis, body = cx.int("axis"), cx.body
    outer, inner = math.prod(operand.shape[:axis]), math.prod(operand.shape[axis + 1 :])
    condition_size, selected = smaller(condition.size, operand.shape[axis]), output.shape[axis]
    body.line("ptrdiff_t n = 0;")
    with body.loop("i", f"{condition_size}"):
        body.line(f"n += {condition.name}[i] != 0;")
    cx.define_size(selected, "n")
    with body.loop("o", outer):
        body.line("n = 0;")
        with body.loop("i", f"{condition_size}"), body.block(f"if ({condition.name}[i])"):
            source = f"{operand.name} + (o * {operand.shape[axis]} + i) * {inner}"
            target = f"{output.name} + (o * {selected} + n++) * {inner}"
            body.line(f"memcpy({target}, {source}, {as_bytes(inner * operand.type.size)});")


def _rows_needs(instance: Instance) -> Needs:
    """Return the scratch space of ``unique``: three indices per row."""
    return Needs(workspace=3 * 8 * highest(instance.shape(0)[0]))


@kernel("Unique", kinds=ANY, needs=_rows_needs)
def unique(cx: KernelContext) -> None:
    """Write the unique rows, their first indices, the inverse and the counts.

    Indices are sorted by row, so equal rows are adjacent. Each row then gets the index of the first
    row equal to it.

    ```
    sort_compare_int32_t_1(order, 6, x0);
    first[order[k]] = compare(x0, order[k - 1], order[k]) == 0 ? first[order[k - 1]] : order[k];
    ...
    memcpy(y0 + n * 1, x0 + i * 1, 4);
    y2[k] = number[first[k]];
    ```
    """
    source, body, type_ = cx.input(0), cx.body, cx.type(0)
    y, first_indices, inverse, counts = (cx.output(i) for i in range(4))
    rows, inner, size = source.shape[0], math.prod(source.shape[1:]), y.shape[0]
    compare = cx.call(
        f"compare_{type_.name}_{inner}", _compare(type_.name, inner, type_.kind == "float")
    )
    sort = cx.call(f"sort_{compare}", _sort(f"sort_{compare}", type_.name, compare))
    scratch = cx.scratch(INT64)
    body.line(f"int64_t *const order = {scratch}, *const first = order + {rows};")
    body.line(f"int64_t *const number = first + {rows};")
    body.line("ptrdiff_t n = 0;")
    body.line(f"{sort}(order, {rows}, {source.name});")
    with body.loop("k", rows):
        is_equal = f"{compare}({source.name}, order[k - 1], order[k]) == 0"
        body.line(f"first[order[k]] = k && {is_equal} ? first[order[k - 1]] : order[k];")
        body.line("n += first[order[k]] == order[k];")
    cx.define_size(size, "n")
    body.line("n = 0;")
    with body.loop("k", rows):
        body.line(f"const ptrdiff_t i = {'order[k]' if cx.int('sorted') else 'k'};")
        with body.block("if (first[i] == i)"):
            if not same(inner, 0):
                target = f"{y.name} + n * {inner}, {source.name} + i * {inner}"
                body.line(f"memcpy({target}, {as_bytes(inner * type_.size)});")
            body.line(f"{first_indices.name}[n] = i;")
            body.line(f"{counts.name}[n] = 0;")
            body.line("number[i] = n++;")
    with body.loop("k", rows):
        body.line(f"{inverse.name}[k] = number[first[k]];")
        body.line(f"++{counts.name}[{inverse.name}[k]];")


def _compare(c_type: str, inner: int, floats: bool) -> str:
    """Return the C function that compares two rows at their first difference.

    NaN equals NaN and comes last.
    """
    nan = "        if (u != u || v != v) {\n            if (u == u || v == v)\n"
    nan += "                return u != u ? 1 : -1;\n            continue;\n        }\n"
    return (
        f"static int compare_{c_type}_{inner}(const {c_type} *x, int64_t a, int64_t b)\n{{\n"
        f"    for (ptrdiff_t k = 0; k < {inner}; ++k) {{\n"
        f"        const {c_type} u = x[a * {inner} + k], v = x[b * {inner} + k];\n"
        f"{nan if floats else ''}"
        "        if (u != v)\n            return u < v ? -1 : 1;\n    }\n"
        "    (void)x;\n    (void)a;\n    (void)b;\n    return 0;\n}\n"
    )


def _sort(name: str, c_type: str, compare: str) -> str:
    """Return the C function that heapsorts the indices 0 to n - 1 by ``compare``, then by index."""
    return (
        f"static void {name}(int64_t *order, ptrdiff_t n, const {c_type} *x)\n{{\n"
        "    for (ptrdiff_t i = 0; i < n; ++i)\n        order[i] = i;\n"
        "    for (ptrdiff_t start = n / 2, end = n; end > 1;) {\n"
        "        int64_t moved;\n"
        "        if (start > 0) {\n            moved = order[--start];\n        } else {\n"
        "            moved = order[--end];\n            order[end] = order[0];\n        }\n"
        "        ptrdiff_t hole = start;\n"
        "        for (ptrdiff_t child; (child = 2 * hole + 1) < end; hole = child) {\n"
        "            if (child + 1 < end) {\n"
        f"                const int way = {compare}(x, order[child], order[child + 1]);\n"
        "                child += way < 0 || (way == 0 && order[child] < order[child + 1]);\n"
        "            }\n"
        f"            const int way = {compare}(x, moved, order[child]);\n"
        "            if (way > 0 || (way == 0 && moved > order[child]))\n                break;\n"
        "            order[hole] = order[child];\n        }\n"
        "        order[hole] = moved;\n    }\n}\n"
    )


def _boxes_needs(instance: Instance) -> Needs:
    """Return the scratch space of ``non_max_suppression``: two indices per box."""
    return Needs(workspace=2 * 8 * highest(instance.shape(0)[1]))


@kernel("NonMaxSuppression", kinds=FLOAT, needs=_boxes_needs)
def non_max_suppression(cx: KernelContext) -> None:
    """Write the selection of boxes of each class, in the order of descending score, then of index.

    The C for 5 boxes and a result of exactly, or at most, 10 rows; ``x2[0]`` is the most boxes to
    select per class. ``define_size`` checks the number of rows at the end:

    ```
    sort_falling_float(order, 5, score);
    for (ptrdiff_t k = 0; k < 5 && chosen < x2[0]; ++k) {
        const int64_t i = order[k];
        ... continue if the box i overlaps a kept box
        if (n == 10)
            return 1; /* an error: more boxes than declared */
        ... write the batch, the class and i to row n of the result
        kept[chosen++] = i;
        ++n;
    }
    ```
    """
    boxes, scores, most_per_class = (cx.input(i) for i in range(3))
    output, body = cx.output(), cx.body
    threshold, least_score = cx.optional(3), cx.optional(4)
    samples, count, _ = boxes.shape
    c_type, size = cx.type(0).name, output.shape[0]
    compare = cx.call(f"falling_{c_type}", _score_comparison(c_type))
    sort = cx.call(f"sort_{compare}", _sort(f"sort_{compare}", c_type, compare))
    iou = cx.call(f"overlap_{c_type}_{cx.int('center_point_box')}", _overlap(cx, c_type))
    scratch = cx.scratch(INT64)
    body.line(f"int64_t *const order = {scratch}, *const kept = order + {count};")
    body.line("ptrdiff_t n = 0;")
    with body.loops(("b", "c"), (samples, scores.shape[1])):
        at = index((scores.shape[1] * count, count), ("b", "c"))
        body.line(f"const {c_type} *const score = {scores.name} + {at};")
        body.line(f"const {c_type} *const box = {boxes.name} + b * {count * 4};")
        body.line("ptrdiff_t chosen = 0;")
        body.line(f"{sort}(order, {count}, score);")
        is_open = f"k < {count} && chosen < {most_per_class.name}[0]"
        with body.block(f"for (ptrdiff_t k = 0; {is_open}; ++k)"):
            body.line("const int64_t i = order[k];")
            _skip_box(body, iou, threshold, least_score)
            body.line(f"if (n == {highest(size)})")
            body.line("    return 1;")
            for column, variable in enumerate(("b", "c", "i")):
                body.line(f"{output.name}[n * 3 + {column}] = {variable};")
            body.line("kept[chosen++] = i;")
            body.line("++n;")
    cx.define_size(size, "n")


def _skip_box(
    body: Writer, iou: str, threshold: Operand | None, least_score: Operand | None
) -> None:
    """Write the end of the loop at a score that is too low, and the skip of a box ``i`` whose
    overlap with a kept box exceeds ``threshold``.

    ```
    if (!(score[i] > x4[0]))
        break;
    ptrdiff_t j = 0;
    while (j < chosen && !(overlap_float_0(box, i, kept[j]) > x3[0]))
        ++j;
    if (j < chosen)
        continue;
    ```
    """
    if least_score is not None:
        body.line(f"if (!(score[i] > {least_score.name}[0]))")
        body.line("    break;")
    most_overlap = f"{threshold.name}[0]" if threshold is not None else "0"
    body.line("ptrdiff_t j = 0;")
    body.line(f"while (j < chosen && !({iou}(box, i, kept[j]) > {most_overlap}))")
    body.line("    ++j;")
    body.line("if (j < chosen)")
    body.line("    continue;")


def _score_comparison(c_type: str) -> str:
    """Return the C function that compares two scores: the larger comes first, NaN last."""
    return (
        f"static int falling_{c_type}(const {c_type} *x, int64_t a, int64_t b)\n{{\n"
        f"    const {c_type} u = x[a], v = x[b];\n"
        "    if (u != u || v != v)\n        return (u != u) - (v != v);\n"
        "    return (u < v) - (u > v);\n}\n"
    )


def _overlap(cx: KernelContext, c_type: str) -> str:
    """Return the C function of the intersection over union of two boxes.

    The two corners of a box may be any opposite ones.

    ```
    const float al0 = a[0] < a[2] ? a[0] : a[2];
    const float ah0 = a[0] < a[2] ? a[2] : a[0];
    …
    const float e0 = (ah0 < bh0 ? ah0 : bh0) - (al0 > bl0 ? al0 : bl0);
    …
    return e0 * e1 / ((ah0 - al0) * (ah1 - al1) + (bh0 - bl0) * (bh1 - bl1) - e0 * e1);
    ```
    """
    centred = cx.int("center_point_box")
    lines = [
        f"static {c_type} overlap_{c_type}_{centred}(const {c_type} *box, int64_t i, int64_t j)",
        "{",
    ]
    lines.append(f"    const {c_type} *const a = box + i * 4, *const b = box + j * 4;")
    for box in "ab":
        for axis in range(2):
            first, second = f"{box}[{axis}]", f"{box}[{axis + 2}]"
            if centred:  # the center and the length
                low, high = f"{first} - {second} / 2", f"{first} + {second} / 2"
                lines.append(f"    const {c_type} {box}l{axis} = {low}, {box}h{axis} = {high};")
                continue
            is_less = f"{first} < {second}"
            lines.append(f"    const {c_type} {box}l{axis} = {is_less} ? {first} : {second};")
            lines.append(f"    const {c_type} {box}h{axis} = {is_less} ? {second} : {first};")
    for axis in range(2):
        low = f"al{axis} > bl{axis} ? al{axis} : bl{axis}"
        high = f"ah{axis} < bh{axis} ? ah{axis} : bh{axis}"
        lines.append(f"    const {c_type} e{axis} = ({high}) - ({low});")
    areas = " + ".join(f"({n}h0 - {n}l0) * ({n}h1 - {n}l1)" for n in "ab")
    lines += [
        "    if (!(e0 > 0) || !(e1 > 0))",
        "        return 0;",
        f"    return e0 * e1 / ({areas} - e0 * e1);",
        "}",
    ]
    return "\n".join(lines) + "\n"


@kernel("BitCast", kinds=ANY)
def bit_cast(cx: KernelContext) -> None:
    """Write a memcpy, because C does not allow reading memory as another type."""
    source, output = cx.input(0), cx.output()
    size = cx.program.slots[cx.instruction.outputs[0]].nbytes
    cx.body.line(f"memcpy({output.name}, {source.name}, {as_bytes(size)});")
