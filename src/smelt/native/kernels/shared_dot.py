"""DotGeneral of floats by the C function that all layers of a small library share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from smelt.native.kernels import algebra
from smelt.native.kernels.dot_layout import Layout, at, constant_matrix
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.nest import row_major
from smelt.native.kernels.register_blocks import machine
from smelt.native.kernels.shared_product import function, sizes_table
from smelt.program.run_sizes import Size


def supports(instance: Instance, layout: Layout) -> bool:
    """True if the product calls the function that all layers of a small library share.

    It has floats and sizes that are numbers.
    """
    axes = (*layout.batch, layout.m, layout.n, layout.k)
    known = not any(
        isinstance(cast(object, part), Size)
        for axis in axes
        for part in (axis.size, axis.lhs, axis.rhs)
    )
    floats = instance.type(0).name in ("float", "double") and algebra.is_sum_product(instance)
    return machine().small and known and floats


def emit(cx: KernelContext, layout: Layout, variables: Sequence[str]) -> None:
    """Write calls of the shared function; a constant right operand is stored by columns."""
    m, n, k, lhs, output = layout.m, layout.n, layout.k, cx.input(0), cx.output()
    sizes = [axis.size for axis in layout.batch]
    right, b_k, b_n = "", k.rhs, n.rhs
    if cx.instruction.inputs[1] in cx.program.constants and not layout.batch:
        right = cx.constant(np.ascontiguousarray(constant_matrix(cx, layout).T), cx.type(1))
        b_k, b_n = 1, k.size
    contiguous = k.lhs == b_k == 1
    table = [m.size, n.size, k.size, m.lhs, k.lhs, b_k, b_n, n.size, 1, 0]
    table_name, name = sizes_table(cx, table), function(cx, contiguous)
    with cx.body.loops(variables, sizes):
        a = at(lhs.name, [axis.lhs for axis in layout.batch], variables)
        b = right or at(cx.input(1).name, [axis.rhs for axis in layout.batch], variables)
        c = at(output.name, [step * m.size * n.size for step in row_major(sizes)], variables)
        cx.body.line(f"{name}({table_name}, {a}, {b}, NULL, {c});")
