"""DotGeneral: batches of matrix products, each computed by register micro-kernels.

The right operand is read in panels as wide as a micro-kernel. Panels of a constant are packed when
the model is compiled. A right operand with strided columns is packed into scratch space one panel
at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from smelt.native.kernels import algebra, log_sum_exp_dot, shared_dot, vector_dot
from smelt.native.kernels.dot_epilogue import dot_epilogue, side_operand_strides
from smelt.native.kernels.dot_layout import Layout, at, constant_matrix, layout_of_instance
from smelt.native.kernels.epilogue import overwritable
from smelt.native.kernels.float_panels import pack, panel_for
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import ANY, KernelContext, kernel
from smelt.native.kernels.nest import row_major
from smelt.native.kernels.portable_micro_kernel import (
    Algebra,
    Product,
    columns_for,
    emit_columns,
    padded,
)
from smelt.native.kernels.vector_dot import Matrices, panel_workspace
from smelt.program.run_sizes import Size, highest, lowest, same, surely_below
from smelt.program.storage import Needs

FEWEST_COLUMNS = 4
"""With fewer columns, many lanes of a vector would be empty."""


def _refuse(instance: Instance) -> str | None:
    """Return why the instruction is refused, None if it is a product of one batch of matrices."""
    if instance.type(0) != instance.type(1):
        return "operands of two element types"
    if layout_of_instance(instance) is None:
        return "dims that are not one batch of matrices"
    return algebra.refusal(instance)


CLASHING = 1024
"""Rows a multiple of this many bytes apart compete for few cache sets."""
FAR, FAR_OF_FEW = 1 << 16, 1 << 20
"""From this size on, in elements, a constant right operand is prefetched, because it does not stay
in cache from run to run. With few rows, each prefetches more, so the limit is higher."""
FEW = 8
"""Fewer rows count as few: with prefetch, 4 rows by 768x768 take 1.13 of the time, by 1024x1024
0.97."""

FEWEST_ROWS = 64
"""The fewest rows and summed elements for which packing a panel is a small part of the work."""


def _panel(instance: Instance, layout: Layout) -> int:
    """Return the columns of a panel for the scalar micro-kernels."""
    if isinstance(cast(object, layout.n.size), Size):
        return 1  # run-time sized columns: the number of panels is unknown
    return min(columns_for(highest(layout.m.size), instance.type(0)), max(layout.n.size, 1))


def _needs(instance: Instance) -> Needs:
    """Return the scratch space of packed panels, and the side operands that may be overwritten."""
    layout = layout_of_instance(instance)
    workspace = _workspace(instance, layout) if layout is not None else 0
    return Needs(in_place=overwritable(instance), workspace=workspace)


def _workspace(instance: Instance, layout: Layout) -> int:
    """Return the bytes of panels that are packed at run time, 0 if there are none."""
    if _is_packed(instance, layout) or shared_dot.supports(instance, layout):
        return 0
    if _in_vectors(instance, layout):
        return panel_workspace(layout.m.size, layout.n.size, layout.k.size, layout.n.rhs)
    if not _is_copied(instance, layout):
        return 0
    width = padded(_panel(instance, layout))
    return width * max(highest(layout.k.size), 1) * instance.type(0).size


def _supports_side_operand(instance: Instance, shape: tuple[int, ...]) -> bool:
    """True if the vector micro-kernels compute the product and the side operand's strides merge."""
    layout = layout_of_instance(instance)
    in_vectors = layout is not None and _in_vectors(instance, layout)
    return in_vectors and side_operand_strides(instance, shape) is not None


def _is_packed(instance: Instance, layout: Layout) -> bool:
    """True if the right operand is a constant matrix, packed at compile time."""
    return instance.instruction.inputs[1] in instance.program.constants and not layout.batch


def _in_vectors(instance: Instance, layout: Layout) -> bool:
    """True if vector micro-kernels pay: float sums of products, and columns that fill vectors."""
    if shared_dot.supports(instance, layout):
        return False
    enough = not surely_below(layout.n.size, FEWEST_COLUMNS)
    return instance.type(0).name == "float" and enough and algebra.is_sum_product(instance)


def _is_copied(instance: Instance, layout: Layout) -> bool:
    """True if panels of the right operand are packed at run time.

    Strided columns are packed. So are rows that many tiles read and that compete for few cache
    sets.
    """
    if highest(layout.n.size) <= 1:
        return False
    row_bytes = layout.k.rhs * instance.type(0).size
    rows_clash = isinstance(cast(object, row_bytes), int) and row_bytes % CLASHING == 0
    has_many_tiles = lowest(layout.m.size) >= FEWEST_ROWS and lowest(layout.k.size) >= FEWEST_ROWS
    return not same(layout.n.rhs, 1) or (rows_clash and has_many_tiles)


@kernel(
    "DotGeneral",
    kinds=ANY,
    needs=_needs,
    refuse=_refuse,
    supports_side_operand=_supports_side_operand,
    shared=True,
)
def dot_general(cx: KernelContext) -> None:
    """Write loops over batches, panels of columns, and rows of a micro-kernel."""
    layout = layout_of_instance(cx)
    assert layout is not None
    variables = [f"b{i}" for i in range(len(layout.batch))]
    if shared_dot.supports(cx, layout):
        shared_dot.emit(cx, layout, variables)
        return
    if not algebra.is_sum_product(cx):
        _emit_semiring(cx, layout, variables)
        return
    if _in_vectors(cx, layout):
        _emit_vectors(cx, layout, variables)
        return
    _emit_tiles(cx, layout, variables, None)


def _emit_semiring(cx: KernelContext, layout: Layout, variables: Sequence[str]) -> None:
    """Write the product over a semiring: by plain comparisons if the operands have no NaN.

    Otherwise by comparisons that propagate NaN. An empty sum is the zero of the semiring.
    """
    semiring, output = algebra.semiring_in(cx), cx.output()
    if layout.k.size == 0:
        zero = semiring.zero_in(np.dtype(cx.program.slots[cx.instruction.outputs[0]].dtype.numpy()))
        with cx.body.loop("i", output.size):
            cx.body.line(f"{output.name}[i] = {output.type.literal(zero.item())};")
        return
    if semiring.plus == "LogAddExp":
        _emit_log_sum_exp(cx, layout, variables)
        return
    nan_free = algebra.nan_free(semiring, output.type)
    if nan_free is None:
        _emit_tiles(cx, layout, variables, algebra.nan_propagating(semiring, output.type))
        return
    with cx.body.block(f"if ({algebra.no_nan_condition(cx, semiring)})"):
        _emit_tiles(cx, layout, variables, nan_free)
    with cx.body.block("else"):
        _emit_tiles(cx, layout, variables, algebra.nan_propagating(semiring, output.type))


def _emit_log_sum_exp(cx: KernelContext, layout: Layout, variables: Sequence[str]) -> None:
    """Write panels of logarithms of sums of exponentials."""
    m, n, k = layout.m, layout.n, layout.k
    sizes = [axis.size for axis in layout.batch]
    function = log_sum_exp_dot.panel_function(cx, cx.type(0))
    left = at(cx.input(0).name, [*(axis.lhs for axis in layout.batch), m.lhs], [*variables, "i"])
    right = at(cx.input(1).name, [*(axis.rhs for axis in layout.batch), n.rhs], [*variables, "j"])
    steps = [step * m.size * n.size for step in row_major(sizes)]
    result = at(cx.output().name, [*steps, n.size, 1], [*variables, "i", "j"])
    panel = log_sum_exp_dot.PANEL
    with cx.body.loops([*variables, "i"], [*sizes, m.size]), cx.body.loop("j", n.size, step=panel):
        width = f"{n.size} - j < {panel} ? {n.size} - j : {panel}"
        cx.body.line(
            f"{function}({k.size}, {left}, {k.lhs}, {right}, {k.rhs}, {n.rhs}, {result}, {width});"
        )


def _emit_tiles(
    cx: KernelContext, layout: Layout, variables: Sequence[str], semiring: Algebra | None
) -> None:
    """Write calls of the portable micro-kernels, which compilers vectorize where they can.

    ``semiring`` is None for sums of products.
    """
    lhs, output, width = cx.input(0), cx.output(), _panel(cx, layout)
    m, n, k = layout.m, layout.n, layout.k
    sizes = [axis.size for axis in layout.batch]
    packed = _pack(cx, layout, width) if _is_packed(cx, layout) else None
    right = packed or cx.input(1).name
    with cx.body.loops(variables, sizes):
        product = Product(
            lhs.type,
            output.type,
            m=m.size,
            n=width,
            k=k.size,
            a=at(lhs.name, [axis.lhs for axis in layout.batch], variables),
            a_m=m.lhs,
            a_k=k.lhs,
            b=at(right, [axis.rhs for axis in layout.batch], variables),
            b_k=k.rhs,
            c=at(output.name, [step * m.size * n.size for step in row_major(sizes)], variables),
            c_m=n.size,
            algebra=semiring,
        )
        divisible = n.size - n.size % width
        with cx.body.loop("j", divisible, step=width):
            _emit_panel(cx, layout, product, "j")
        if n.size > divisible:
            remaining = n.size - divisible
            _emit_panel(cx, layout, replace(product, n=remaining), str(divisible))


def _emit_vectors(cx: KernelContext, layout: Layout, variables: Sequence[str]) -> None:
    """Write calls of vector micro-kernels, with packed panels, epilogue and shared loops."""
    m, n, k = layout.m, layout.n, layout.k
    lhs, output = cx.input(0), cx.output()
    sizes = [axis.size for axis in layout.batch]
    is_packed = _is_packed(cx, layout)
    matrix = constant_matrix(cx, layout) if is_packed else None
    packed = matrix if matrix is None or cx.is_trial else pack(matrix, m.size)
    right = "" if packed is None else cx.constant(packed, cx.type(1))
    has_many_panels = lowest(n.size) >= 2 * panel_for(m.size) * cx.body.parts
    shared_dim = "columns" if has_many_panels else "rows"
    widest_dim = cx.body.widest(sizes)
    shards_batch = widest_dim is not None and is_even(sizes[widest_dim], cx.body.parts)
    if shards_batch:
        shared_dim = ""
    with cx.body.loops(variables, sizes, widest_dim if shards_batch else None):
        product = Matrices(
            m=m.size,
            n=n.size,
            k=k.size,
            a=at(lhs.name, [axis.lhs for axis in layout.batch], variables),
            a_m=m.lhs,
            a_k=k.lhs,
            b=right or at(cx.input(1).name, [axis.rhs for axis in layout.batch], variables),
            b_k=k.rhs,
            b_n=n.rhs,
            c=at(output.name, [step * m.size * n.size for step in row_major(sizes)], variables),
            epilogue=dot_epilogue(cx, variables),
            shared=shared_dim,
            far=is_packed and n.size * k.size >= (FAR if lowest(m.size) >= FEW else FAR_OF_FEW),
        )
        copies = not is_packed and panel_workspace(m.size, n.size, k.size, n.rhs) > 0
        scratch = [cx.scratch(lhs.type)] if copies else []
        vector_dot.emit(cx, product, packed=is_packed, scratch=scratch)


def is_even(count: int, parts: int) -> bool:
    """True if ``parts`` threads take about equal time for ``count`` equal matrices.

    Each thread has at least four matrices, or all have the same number.
    """
    return count >= 4 * parts or (count >= parts and count % parts == 0)


def _emit_panel(cx: KernelContext, layout: Layout, product: Product, first: str) -> None:
    """Write a panel of result columns from ``first`` on; ``product.n`` is its width."""
    k, n, width = layout.k, layout.n, padded(product.n)
    result = f"{product.c} + {first}"
    if _is_packed(cx, layout):
        right = f"{product.b} + {first} * {k.size}"
        product = replace(product, b=right, b_k=width, width=width)
    elif _is_copied(cx, layout):
        scratch = cx.scratch(product.element)
        with cx.body.loops(("p", "q"), (k.size, width)):
            read = f"({product.b})[({first} + q) * {n.rhs} + p * {k.rhs}]"
            value = read if width == product.n else f"q < {product.n} ? {read} : 0"
            cx.body.line(f"{scratch}[p * {width} + q] = {value};")
        product = replace(product, b=scratch, b_k=width, width=width)
    else:
        product = replace(product, b=f"{product.b} + {first}")
    emit_columns(cx, replace(product, c=result))


def _pack(cx: KernelContext, layout: Layout, width: int) -> str:
    """Return the C name of the constant right operand, packed in panels ``[k][columns]``.

    Panels are padded to whole vectors.
    """
    matrix, n = constant_matrix(cx, layout), layout.n
    panels = [matrix[:, first : first + width] for first in range(0, n.size, width)]
    padded_panels = [
        np.pad(panel, ((0, 0), (0, padded(panel.shape[1]) - panel.shape[1]))) for panel in panels
    ]
    return cx.constant(np.concatenate([panel.reshape(-1) for panel in padded_panels]), cx.type(1))
