"""Products by BLAS through function pointers: ``smelt.native::Gemm`` replaces such a DotGeneral."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from smelt.native.kernels.dot import is_even
from smelt.native.kernels.dot_epilogue import dot_epilogue, side_operand_strides
from smelt.native.kernels.dot_layout import Axis, Layout, at, layout_of_instance
from smelt.native.kernels.epilogue import emit_stores, plus
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.nest import row_major
from smelt.program.run_sizes import Size
from smelt.runtime.jit.blas import FUNCTIONS

GEMM = "smelt.native::Gemm"
BIND = "smelt_bind"
PREFIX = "blas_"
ROWS, PLAIN, TRANSPOSED = 101, 111, 112
"""The numbers by which ``cblas.h`` names row-major order and the transposition of a matrix."""
LARGEST = 2**31 - 1
"""The largest size: BLAS takes ints."""


@dataclass(frozen=True)
class Matrix:
    """The layout of an operand in CBLAS terms: transpose flag and leading dimension."""

    flag: int
    leading: int


def matrices(instance: Instance) -> tuple[Layout, Matrix, Matrix] | None:
    """Return the layout of a DotGeneral, of its left and of its right operand.

    None if BLAS cannot read the operands in place: no dim of a matrix is contiguous, a dim is
    empty, or a number exceeds C's ``int``.
    """
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
    """Return size and stride of an axis of the left operand, as ``_matrix`` takes them."""
    return axis.size, axis.lhs


def _rhs(axis: Axis) -> tuple[int, int]:
    """Return size and stride of an axis of the right operand, as ``_matrix`` takes them."""
    return axis.size, axis.rhs


def _matrix(rows: tuple[int, int], columns: tuple[int, int]) -> Matrix | None:
    """Return the layout of a matrix; ``rows`` and ``columns`` are size and stride of its dims.

    ``(4, 1), (3, 4)`` is a 3 x 4 matrix in memory, so ``Matrix(TRANSPOSED, 4)``.

    None if neither dim is contiguous.
    """
    (row_count, row_step), (column_count, column_step) = rows, columns
    if column_step == 1 or column_count == 1:
        return Matrix(PLAIN, max(row_step, column_count))
    if row_step == 1 or row_count == 1:
        return Matrix(TRANSPOSED, max(column_step, row_count))
    return None


def _supports_side_operand(instance: Instance, shape: tuple[int, ...]) -> bool:
    """True for a float product and a side operand whose strides merge."""
    return instance.type(0).name == "float" and side_operand_strides(instance, shape) is not None


@kernel(GEMM, supports_side_operand=_supports_side_operand, shared=True)
def gemm(cx: KernelContext) -> None:
    """Call BLAS for each matrix of the batch, in row blocks if there is an epilogue.

    Shards take whole matrices, or rows of each.
    """
    blas_layout = matrices(cx)
    assert blas_layout is not None  # the pass that writes this instruction checked it
    layout, left, right = blas_layout
    m, n, k = (axis.size for axis in (layout.m, layout.n, layout.k))
    sizes = [axis.size for axis in layout.batch]
    names = [f"b{i}" for i in range(len(sizes))]
    a = at(cx.input(0).name, [axis.lhs for axis in layout.batch], names)
    b = at(cx.input(1).name, [axis.rhs for axis in layout.batch], names)
    c = at(cx.output().name, [step * m * n for step in row_major(sizes)], names)
    function = pointer(cx, "sgemm" if cx.type(0).name == "float" else "dgemm")
    epilogue = dot_epilogue(cx, names)
    rows = max(FEWEST_ROWS, BLOCK // n) if cx.instruction.epilogue else m
    row_stride = left.leading if left.flag == PLAIN else 1
    shared_dim = cx.body.widest(sizes)
    shards_batch = shared_dim is not None and is_even(sizes[shared_dim], cx.body.parts)
    with cx.body.loops(names, sizes, shared_dim if shards_batch else None):
        row_blocks = parts_of_rows if cx.body.parts > 1 and not shards_batch else blocks
        for first, count in row_blocks(cx, "i", m, rows):
            cx.body.line(
                f"{function}({ROWS}, {left.flag}, {right.flag}, {count}, {n}, {k}, 1, "
                f"{plus(a, first, row_stride)}, {left.leading}, {b}, {right.leading}, 0, "
                f"{plus(c, first, n)}, {n});"
            )
            if cx.instruction.epilogue:
                block, shape = (plus(c, first, n), n), (Size.named(str(count), 1, m), n)
                emit_stores(cx.body, epilogue.at(first, "0"), shape, block, block)


BLOCK = 1 << 17
"""The size of a result block, in elements, that is still in cache when its epilogue runs."""

FEWEST_ROWS = 192
"""The fewest rows of a block: with fewer, packing the other operand in each call dominates."""


TILE = 16
"""A multiple of the rows of BLAS's micro-kernel."""


def parts_of_rows(
    cx: KernelContext, var: str, size: int, most: int
) -> Iterator[tuple[str, int | str]]:
    """Yield blocks of at most ``most`` rows like ``blocks``, in one shared loop."""
    step = min(most, -(-size // (cx.body.parts * TILE)) * TILE)
    with cx.body.shared_loop(var, size, step=step):
        yield var, f"({size} - {var} < {step} ? {size} - {var} : {step})"


def blocks(cx: KernelContext, var: str, size: int, step: int) -> Iterator[tuple[str, int | str]]:
    """Yield first position and length of blocks of a dim, inside of the loops that compute them.

    The last block is up to half of ``step`` longer, so no block is short.
    """
    full_steps = max((size + step // 2) // step - 1, 0)
    if full_steps:
        with cx.body.loop(var, full_steps * step, step=step):
            yield var, step
    yield str(full_steps * step), size - full_steps * step


def pointer(cx: KernelContext, name: str) -> str:
    """Declare the pointer to the BLAS function ``name``, and return the pointer's name."""
    t = cx.type(0).name
    parameters = (
        f"int, int, int, int, int, int, {t}, const {t} *, int, const {t} *, int, {t}, {t} *, int"
    )
    return cx.call(f"{PREFIX}{name}", f"static void (*{PREFIX}{name})({parameters});\n")


def binding(support: dict[str, str]) -> str:
    """Return the C function that sets the function pointers from a table; "" if ``support`` has
    none.

    ```
    void smelt_bind(void *const *table)
    {
        *(void **)&blas_sgemm = table[0];
    }
    ```
    """
    used = [name for name in FUNCTIONS if f"{PREFIX}{name}" in support]
    if not used:
        return ""
    lines = [f"    *(void **)&{PREFIX}{name} = table[{FUNCTIONS.index(name)}];\n" for name in used]
    return f"void {BIND}(void *const *table)\n{{\n{''.join(lines)}}}\n"
