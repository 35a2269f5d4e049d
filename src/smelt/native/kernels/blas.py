"""Products by BLAS, called by pointer: ``smelt.native::Gemm`` is a DotGeneral that is worth it."""

from __future__ import annotations

from dataclasses import dataclass

from smelt.native.kernels.dot import at
from smelt.native.kernels.dot_layout import Axis, Layout, layout_of_instance
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.nest import row_major
from smelt.runtime.jit.blas import FUNCTIONS

GEMM = "smelt.native::Gemm"
BIND = "smelt_bind"
PREFIX = "blas_"
_ROWS, _PLAIN, _TRANSPOSED = 101, 111, 112
_LARGEST = 2**31 - 1
"""BLAS counts in ints."""


@dataclass(frozen=True)
class Matrix:
    """How an operand lies in memory, in the words of CBLAS."""

    flag: int
    leading: int


def matrices(instance: Instance) -> tuple[Layout, Matrix, Matrix] | None:
    """How BLAS sees the operands of a DotGeneral; None if it cannot read them as they lie."""
    layout = layout_of_instance(instance)
    types = {instance.type(0).name, instance.type(1).name}
    if layout is None or types not in ({"float"}, {"double"}):
        return None
    m, n, k = layout.m, layout.n, layout.k
    if 0 in (m.size, n.size, k.size, *(axis.size for axis in layout.batch)):
        return None
    left = _matrix(_lhs(m), _lhs(k))
    right = _matrix(_rhs(k), _rhs(n))
    if left is None or right is None:
        return None
    numbers = (m.size, n.size, k.size, left.leading, right.leading)
    return (layout, left, right) if max(numbers) <= _LARGEST else None


def _lhs(axis: Axis) -> tuple[int, int]:
    return axis.size, axis.lhs


def _rhs(axis: Axis) -> tuple[int, int]:
    return axis.size, axis.rhs


def _matrix(rows: tuple[int, int], columns: tuple[int, int]) -> Matrix | None:
    """A matrix by the size and stride of its dims; one of them must be contiguous."""
    (row_count, row_step), (column_count, column_step) = rows, columns
    if column_step == 1 or column_count == 1:
        return Matrix(_PLAIN, max(row_step, column_count))
    if row_step == 1 or row_count == 1:
        return Matrix(_TRANSPOSED, max(column_step, row_count))
    return None


@kernel(GEMM)
def gemm(cx: KernelContext) -> None:
    """One call for each matrix of the batch."""
    found = matrices(cx)
    assert found is not None  # who chose this instruction asked
    layout, left, right = found
    m, n, k = (axis.size for axis in (layout.m, layout.n, layout.k))
    sizes = [axis.size for axis in layout.batch]
    names = [f"b{i}" for i in range(len(sizes))]
    a = at(cx.input(0).name, [axis.lhs for axis in layout.batch], names)
    b = at(cx.input(1).name, [axis.rhs for axis in layout.batch], names)
    c = at(cx.output().name, [step * m * n for step in row_major(sizes)], names)
    function = pointer(cx, "sgemm" if cx.type(0).name == "float" else "dgemm")
    with cx.body.loops(names, sizes):
        cx.body.line(
            f"{function}({_ROWS}, {left.flag}, {right.flag}, {m}, {n}, {k}, 1, {a}, {left.leading},"
            f" {b}, {right.leading}, 0, {c}, {n});"
        )


def pointer(cx: KernelContext, name: str) -> str:
    """The pointer to a function of the table, declared."""
    t = cx.type(0).name
    parameters = (
        f"int, int, int, int, int, int, {t}, const {t} *, int, const {t} *, int, {t}, {t} *, int"
    )
    return cx.call(f"{PREFIX}{name}", f"static void (*{PREFIX}{name})({parameters});\n")


def binding(support: dict[str, str]) -> str:
    """The function that sets the pointers of ``support`` from a table; empty if there are none."""
    used = [name for name in FUNCTIONS if f"{PREFIX}{name}" in support]
    if not used:
        return ""
    lines = [f"    *(void **)&{PREFIX}{name} = table[{FUNCTIONS.index(name)}];\n" for name in used]
    return f"void {BIND}(void *const *table)\n{{\n{''.join(lines)}}}\n"
