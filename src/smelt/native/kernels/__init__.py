"""Kernels: how each instruction becomes a C function. One file per family of operators.

Each file here is imported when the first kernel is requested; no list names it.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.native.kernels import elementwise, formula
from smelt.native.kernels.kernel import KERNELS, Kernel
from smelt.native.types import C_TYPES

__all__ = ["Kernel", "element_types", "kernel_names", "kernel_of"]


def kernel_of(op: str) -> Kernel | None:
    """Return the kernel of ``op``: registered, from an elementwise row, or from a declared
    formula."""
    return KERNELS.get(op) or elementwise.by_row(op) or formula.kernel_of(op)


def kernel_names() -> tuple[str, ...]:
    """Return every instruction that has a kernel, sorted."""
    return tuple(sorted({*KERNELS, *elementwise.operators_with_c(), *formula.instructions()}))


def element_types(domain: str, op_type: str) -> frozenset[ir.DataType] | None:
    """Return the types that an operator's kernel takes; None if other operators replace it."""
    kernel = kernel_of(f"{domain}::{op_type}" if domain else op_type)
    if kernel is None:
        return None
    return frozenset(
        dtype
        for dtype, type_ in C_TYPES.items()
        if C_TYPES[type_.computed or dtype].kind in kernel.kinds
    )
