"""Products by BLAS, called by pointer: ``smelt.native::Gemm`` is a DotGeneral that is worth it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from smelt.native.kernels.dot import at, finish_beside, is_even, strides_beside
from smelt.native.kernels.dot_layout import Axis, Layout, layout_of_instance
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.nest import row_major
from smelt.native.kernels.vector_tile import Finish, plus
from smelt.runtime.jit.blas import FUNCTIONS

GEMM = "smelt.native::Gemm"
BIND = "smelt_bind"
PREFIX = "blas_"
ROWS, PLAIN, TRANSPOSED = 101, 111, 112
LARGEST = 2**31 - 1
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
    return (layout, left, right) if max(numbers) <= LARGEST else None


def _lhs(axis: Axis) -> tuple[int, int]:
    return axis.size, axis.lhs


def _rhs(axis: Axis) -> tuple[int, int]:
    return axis.size, axis.rhs


def _matrix(rows: tuple[int, int], columns: tuple[int, int]) -> Matrix | None:
    """A matrix by the size and stride of its dims; one of them must be contiguous."""
    (row_count, row_step), (column_count, column_step) = rows, columns
    if column_step == 1 or column_count == 1:
        return Matrix(PLAIN, max(row_step, column_count))
    if row_step == 1 or row_count == 1:
        return Matrix(TRANSPOSED, max(column_step, row_count))
    return None


def _finishes(instance: Instance, shape: tuple[int, ...]) -> bool:
    return instance.type(0).name == "float" and strides_beside(instance, shape) is not None


@kernel(GEMM, finishes=_finishes, shared=True)
def gemm(cx: KernelContext) -> None:
    """Calls for each matrix of the batch: one, or one for each block of rows that is finished.

    Parts take matrices, or rows of each.
    """
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
    finish = finish_beside(cx, names)
    rows = max(FEWEST_ROWS, BLOCK // n) if cx.instruction.finish else m
    down = left.leading if left.flag == PLAIN else 1
    cut = cx.body.widest(sizes)
    in_batch = cut is not None and is_even(sizes[cut], cx.body.parts)
    with cx.body.loops(names, sizes, cut if in_batch else None):
        cutting = parts_of_rows if cx.body.parts > 1 and not in_batch else blocks
        for first, count in cutting(cx, "i", m, rows):
            cx.body.line(
                f"{function}({ROWS}, {left.flag}, {right.flag}, {count}, {n}, {k}, 1, "
                f"{plus(a, first, down)}, {left.leading}, {b}, {right.leading}, 0, "
                f"{plus(c, first, n)}, {n});"
            )
            if cx.instruction.finish:
                finish_block(cx, finish.at(first, "0"), plus(c, first, n), n, (count, n))


BLOCK = 1 << 17
"""Elements of a result that are still near the processor when they are finished."""

FEWEST_ROWS = 192
"""Rows of a product below which it takes longer to arrange the other side, for each call anew."""


TILE = 16
"""Rows that BLAS computes at once, or a multiple of them."""


def parts_of_rows(
    cx: KernelContext, var: str, size: int, most: int
) -> Iterator[tuple[str, int | str]]:
    """As ``blocks``, in one loop that parts share: at most ``most`` at a time, and enough."""
    step = min(most, -(-size // (cx.body.parts * TILE)) * TILE)
    with cx.body.shared_loop(var, size, step=step):
        yield var, f"({size} - {var} < {step} ? {size} - {var} : {step})"


def blocks(cx: KernelContext, var: str, size: int, step: int) -> Iterator[tuple[str, int | str]]:
    """The first position and the length of parts of a dim, in loops that what follows is put in.

    The last part has up to half of ``step`` more, so that none is short.
    """
    whole = max((size + step // 2) // step - 1, 0)
    if whole:
        with cx.body.loop(var, whole * step, step=step):
            yield var, step
    yield str(whole * step), size - whole * step


def finish_block(
    cx: KernelContext,
    finish: Finish,
    target: str,
    pitch: int,
    shape: tuple[int | str, int],
    bias: str = "",
) -> None:
    """Let rows and columns of sums at ``target``, whose rows are ``pitch`` apart, become results.

    ``bias`` is a pointer to what is added to each row before.
    """
    for name, text in finish.support:
        cx.call(name, text)
    with cx.body.block(""):
        cx.body.line(f"float *block = {target};")
        with cx.body.loop("r", shape[0]), cx.body.loop("q", shape[1]):
            here = finish.at("r", "q")
            added = f" + ({bias})[r]" if bias else ""
            cx.body.line(f"const float sum = block[r * {pitch} + q]{added};")
            operands = ["sum", *(f"({one.pointer})[0]" for one in here.beside)]
            for line in here.lines:
                cx.body.line(line.format(*operands))
            cx.body.line(f"block[r * {pitch} + q] = {here.text.format(*operands)};")


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
