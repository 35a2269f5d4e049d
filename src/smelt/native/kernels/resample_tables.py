"""Tables of the source rows of a Resample along an axis of run-time size.

For static sizes, the tables are constants. For run-time sizes, the kernel computes them in scratch
space, by the same formulas (``smelt.program.resampling``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import onnx_ir as ir

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.statements import Scalar, Statements, read_lines
from smelt.native.types import C_TYPES, INDEX, CType
from smelt.program.resampling import CROP, Sampling, coordinate_of, nearest_of, weight_of
from smelt.program.run_sizes import Size, highest, lowest

WIDE = C_TYPES[ir.DataType.DOUBLE]


@dataclass(frozen=True)
class Tables:
    """The C names of tables: source rows and weights of ``width`` taps per result row, and flags.

    A flag is set for a result row outside of the source. A name is empty if there is no such table.
    """

    rows: str
    weights: str
    outside: str
    width: int


def is_runtime_sized(instance: Instance) -> bool:
    """True if the axis has a run-time size in the operand or the result."""
    axis = instance.int("axis")
    sizes = (instance.shape(0)[axis], instance.output_shape()[axis])
    return any(isinstance(cast(object, size), Size) for size in sizes)


def refusal(sampling: Sampling) -> str | None:
    """Return why the tables cannot be computed at run time, None if they can."""
    if sampling.antialias and sampling.scale is None:
        return "antialias with a scale that is computed at run time"
    return None


def table_bytes(instance: Instance) -> int:
    """Return the bytes of the tables for the largest sizes."""
    sampling = Sampling.of(instance.attributes)
    count, width = highest(instance.output_shape()[instance.int("axis")]), _width(sampling)
    weights = 0 if sampling.mode == "nearest" else instance.type(0).size
    return count * (width * (weights + INDEX.size) + INDEX.size)


def _width(sampling: Sampling) -> int:
    """Return the taps per result row: 1 for nearest, 2 for linear, 4 for cubic, more if widened by
    antialiasing."""
    return 1 if sampling.mode == "nearest" else 2 - 2 * sampling.first_tap(_shrunk(sampling))


def _shrunk(sampling: Sampling) -> float:
    """Return the scale by which antialiasing widens the filter; 1 without antialiasing."""
    return min(sampling.scale or 1.0, 1.0) if sampling.antialias else 1.0


def make_tables(cx: KernelContext) -> Tables:
    """Write the loop that fills the tables, and return them."""
    sampling, axis = Sampling.of(cx.attributes), cx.int("axis")
    size, count = cx.shape(0)[axis], cx.output_shape()[axis]
    cx.rounds_each = True
    if lowest(size) == 0:
        cx.may_fail()
        cx.body.line(f"if ({size} == 0 && {count} > 0)")
        cx.body.line("    return 1;")
    tables = _declare_tables(cx, sampling, count)
    with cx.body.loop("i", count):
        statements = Statements(C_TYPES[ir.DataType.FLOAT] if sampling.in_float32 else WIDE)
        last = f"({statements.type.name}){size} - 1"
        if sampling.mode != "nearest":
            cx.body.line("double at;")
        with cx.body.block(""):
            at = _place(statements, sampling, size, count)
            if tables.outside:
                statements.write(f"outside[i] = {at.name} < 0 || {at.name} > {last};")
            if sampling.mode == "nearest":
                chosen = statements.scalar(nearest_of(statements, sampling.nearest, at)).name
                _write(cx, statements, f"rows[i] = {_within(chosen, last)};")
            else:
                _write(cx, statements, f"at = {at.name};")
        if sampling.mode != "nearest":
            _weigh(cx, sampling, size, tables.width)
    return tables


def _declare_tables(cx: KernelContext, sampling: Sampling, count: int) -> Tables:
    """Declare the tables; weights come first, because rows never need more alignment."""
    body, width = cx.body, _width(sampling)
    if sampling.mode == "nearest":
        body.line(f"int32_t *const rows = {cx.scratch(INDEX)};")
    else:
        type_: CType = cx.type(0)
        body.line(f"{type_.name} *const weights = {cx.scratch(type_)};")
        body.line(f"int32_t *const rows = (int32_t *)(weights + {count * width});")
    outside = sampling.coordinates == CROP
    if outside:
        body.line(f"int32_t *const outside = rows + {count * width};")
    return Tables("rows", "weights", "outside" if outside else "", width)


def _place(statements: Statements, sampling: Sampling, size: int, count: int) -> Scalar:
    """Return the position in the source of result row ``i``."""
    c_type = statements.type.name
    before = statements.define(f"({c_type}){size}")
    after = statements.define(f"({c_type}){count}")
    row = statements.define(f"({c_type})i")
    scale = after / before if sampling.scale is None else statements.scalar(sampling.scale)
    length = after if sampling.scale is None else scale * before
    start, end = statements.scalar(sampling.start), statements.scalar(sampling.end)
    return statements.scalar(
        coordinate_of(
            statements, sampling.coordinates, row, before, after, scale, length, start, end
        )
    )


def _within(position: str, last: str) -> str:
    """Return the C of ``position`` clamped to 0 and ``last``, as an integer."""
    return f"{position} > 0 ? (int32_t)({position} < {last} ? {position} : {last}) : 0"


def _write(cx: KernelContext, statements: Statements, *more: str) -> None:
    """Write ``statements``, then ``more``."""
    for text in more:
        statements.write(text)
    for line in read_lines(statements.lines):
        cx.body.line("    " * line.depth + line.text)


def _weigh(cx: KernelContext, sampling: Sampling, size: int, width: int) -> None:
    """Write the taps around ``at``, without taps of weight 0 or on the same row as another.

    1. Add up the weights of taps by row: ``found`` are the rows, ``shares`` their weights.
    2. Drop rows of weight 0, which would make an infinite element NaN, and divide by the total.
    3. If rows are fewer than taps, repeat the last row with its weight in equal parts.
    """
    body, c_type = cx.body, cx.type(0).name
    shrunk = _shrunk(sampling)
    body.line(f"int32_t found[{width}], used = 0, kept = 0;")
    body.line(f"double shares[{width}], total = 0;")
    with body.loop("j", width):
        body.line(f"const double row = ceil(at) - 1 + ({sampling.first_tap(shrunk)}) + (double)j;")
        body.line(f"const double apart = fabs(row - at) * {WIDE.literal(shrunk)};")
        m = Statements(WIDE)
        weight = m.scalar(weight_of(m, sampling.mode, m.named("apart"), sampling.cubic)).name
        if sampling.exclude_outside:
            weight = f"row < 0 || row >= (double){size} ? 0 : {weight}"
        _write(cx, m, f"const double weight = {weight};")
        body.line(f"const int32_t place = {_within('row', f'(double){size} - 1')};")
        body.line("int32_t same = 0;")
        body.line("while (same < used && found[same] != place) ++same;")
        with body.block("if (same == used)"):
            body.line("found[used] = place;")
            body.line("shares[used++] = 0;")
        body.line("shares[same] += weight;")
        body.line("total += weight;")
    with body.loop("j", "used"), body.block("if (shares[j] != 0)"):
        body.line("found[kept] = found[j];")
        body.line("shares[kept++] = shares[j] / (total != 0 ? total : 1);")
    with body.block("if (kept == 0)"):
        body.line("shares[kept++] = 0;")
    with body.loop("j", width):
        body.line("const ptrdiff_t tap = j < kept ? j : kept - 1;")
        body.line(f"const double parts = tap + 1 < kept ? 1.0 : (double)({width} - tap);")
        body.line(f"rows[i * {width} + j] = found[tap];")
        body.line(f"weights[i * {width} + j] = ({c_type})(shares[tap] / parts);")
