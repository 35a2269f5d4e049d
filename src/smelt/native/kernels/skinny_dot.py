"""Products with one or a few columns on one side, as sums along contiguous rows of the other.

A micro-kernel over columns would read rows element by element. Here vectors along several rows are
accumulated, and their lanes are added at the end. A complex vector is such a product: its parts are
two columns. The C uses GNU vectors, so only programs of this process contain it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smelt.native.emit.writer import Writer
from smelt.native.kernels import algebra
from smelt.native.kernels.dot_layout import Layout, at, layout_of_instance
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.lane_batched_text import BYTES, LANES, lanes_of
from smelt.native.kernels.nest import row_major
from smelt.program.storage import Needs

SKINNY_DOT = "smelt.native::SkinnyDot"
MOST = 4
"""The most columns for which this product pays, and the most accumulators at once."""


@dataclass(frozen=True)
class Sides:
    """``many`` rows of the operand number ``long`` times ``few`` columns of the other operand.

    The steps are strides in elements: from row to row (``long_step``), from column to column
    (``short_step``) and along a column (``short_k``); in the result, from row to row (``to_many``)
    and from column to column (``to_few``).
    """

    long: int
    many: int
    long_step: int
    few: int
    short_step: int
    short_k: int
    to_many: int
    to_few: int


def sides_of(layout: Layout) -> Sides | None:
    """Return both sides if one has few columns and the other contiguous rows, else None."""
    rows, columns, terms = layout.m, layout.n, layout.k
    if columns.size <= MOST and terms.lhs == 1 and rows.size > columns.size:
        return Sides(0, rows.size, rows.lhs, columns.size, columns.rhs, terms.rhs, columns.size, 1)
    if rows.size <= MOST and terms.rhs == 1 and columns.size > rows.size:
        return Sides(1, columns.size, columns.rhs, rows.size, rows.lhs, terms.lhs, 1, columns.size)
    return None


def supports(instance: Instance) -> bool:
    """True if this file's kernels support the instruction: float products that fill vectors.

    The weights are not constant: constants would be packed.
    """
    step = instance.instruction
    if step.op != "DotGeneral" or not algebra.is_sum_product(instance):
        return False
    types = {instance.type(0).name, instance.type(1).name, algebra.result_type(instance).name}
    layout = layout_of_instance(instance)
    if layout is None or types not in ({"float"}, {"double"}):
        return False
    sides = sides_of(layout)
    if sides is None or sides.many < MOST or 0 in [axis.size for axis in layout.batch]:
        return False
    is_packed = sides.long == 1 and step.inputs[1] in instance.program.constants
    return layout.k.size >= 2 * lanes_of(types.pop()) and not is_packed


def _needs(instance: Instance) -> Needs:
    """Return the scratch space of the columns, which are packed if they are not contiguous."""
    layout = layout_of_instance(instance)
    sides = sides_of(layout) if layout is not None else None
    if layout is None or sides is None or sides.short_k == 1:
        return Needs()
    return Needs(workspace=sides.few * layout.k.size * instance.type(0).size)


@kernel(SKINNY_DOT, needs=_needs, shared=True)
def skinny_dot(cx: KernelContext) -> None:
    """Write, for each matrix of the batch, the packing of the few columns, then blocks of rows.

    ```
    for (ptrdiff_t p = 0; p < 64; ++p) {
        for (ptrdiff_t q = 0; q < 2; ++q)
            scratch[q * 64 + p] = (x1)[p * 2 + q * 1];
    }
    for (ptrdiff_t i = 0; i < 8; i += 2)
        few_float_2x2(64, x0 + i * 64, 64, scratch, 64, y + i * 2, 2, 1);
    ```
    """
    layout = layout_of_instance(cx)
    sides = sides_of(layout) if layout is not None else None
    assert layout is not None  # ``supports`` was true for this instruction
    assert sides is not None
    body, k = cx.body, layout.k.size
    names = [f"b{i}" for i in range(len(layout.batch))]
    sizes = [axis.size for axis in layout.batch]
    inputs = (cx.input(0).name, cx.input(1).name)
    left = at(inputs[0], [axis.lhs for axis in layout.batch], names)
    right = at(inputs[1], [axis.rhs for axis in layout.batch], names)
    rows, columns = (left, right) if sides.long == 0 else (right, left)
    result = at(cx.output().name, [s * sides.many * sides.few for s in row_major(sizes)], names)
    block = max(1, MOST // sides.few)
    with body.loops(names, sizes):
        b_step = sides.short_step
        if sides.short_k != 1:
            scratch = cx.scratch(cx.type(0))
            with body.loops(("p", "q"), (k, sides.few)):
                read = f"({columns})[p * {sides.short_k} + q * {sides.short_step}]"
                body.line(f"{scratch}[q * {k} + p] = {read};")
            columns, b_step = scratch, k
        divisible = sides.many - sides.many % block
        for first, end, count in ((0, divisible, block), (divisible, sides.many, 1)):
            with body.shared_loop("i", end, start=first, step=count):
                function = _block(cx, count, sides.few)
                a, c = f"{rows} + i * {sides.long_step}", f"{result} + i * {sides.to_many}"
                steps = f"{sides.to_many}, {sides.to_few}"
                body.line(
                    f"{function}({k}, {a}, {sides.long_step}, {columns}, {b_step}, {c}, {steps});"
                )


def _block(cx: KernelContext, rows: int, columns: int) -> str:
    """Return the name of the function that computes ``rows`` rows by ``columns`` columns."""
    c_type = cx.type(0).name
    cx.call(f"lanes_{c_type}", LANES.replace("@t", c_type))
    pairs = [(row, column) for row in range(rows) for column in range(columns)]
    name, out = f"few_{c_type}_{rows}x{columns}", Writer()
    out.line(f"static void {name}(ptrdiff_t kn, const {c_type} *restrict a, ptrdiff_t am,")
    out.line(f"    const {c_type} *restrict b, ptrdiff_t bn, {c_type} *restrict c, ptrdiff_t cm,")
    out.line("    ptrdiff_t cn)")
    with out.block(""):
        _sums(out, c_type, pairs)
        for row, column in pairs:
            out.line(f"{c_type} t{row}_{column} = 0;")
        with out.loop("l", BYTES // cx.type(0).size):
            for row, column in pairs:
                out.line(f"t{row}_{column} += s{row}_{column}[l];")
        with out.loop("k", "kn", start="whole"):
            for row, column in pairs:
                out.line(f"t{row}_{column} += a[{row} * am + k] * b[{column} * bn + k];")
        for row, column in pairs:
            out.line(f"c[{row} * cm + {column} * cn] = t{row}_{column};")
    return cx.call(name, out.text())


def _sums(out: Writer, t: str, pairs: Sequence[tuple[int, int]]) -> None:
    """Write a vector accumulator for each pair over all whole vectors of a row."""
    lanes = lanes_of(t)
    out.line(f"const ptrdiff_t whole = kn - kn % {lanes};")
    for row, column in pairs:
        out.line(f"lanes_{t} s{row}_{column} = {{0}};")
    with out.loop("k", "whole", step=lanes):
        for row in sorted({row for row, _ in pairs}):
            out.line(f"const lanes_{t} a{row} = *(const lanes_{t} *)(a + {row} * am + k);")
        for column in sorted({column for _, column in pairs}):
            out.line(f"const lanes_{t} b{column} = *(const lanes_{t} *)(b + {column} * bn + k);")
        for row, column in pairs:
            out.line(f"s{row}_{column} += a{row} * b{column};")
