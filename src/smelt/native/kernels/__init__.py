"""Kernels: how each instruction becomes a C function. One file a family of operators."""

from __future__ import annotations

import onnx_ir as ir

from smelt.native.kernels import (  # noqa: F401 - each fills the table
    along_axis,
    cast,
    clip,
    conv,
    conv_transpose,
    dot,
    elementwise,
    formula,
    indexing,
    movement,
    normalization,
    pool,
    recurrence,
    reduce,
    reduce_at_run_time,
    resample,
    storage,
)
from smelt.native.kernels.kernel import Kernel, registered, registered_names
from smelt.native.types import C_TYPES

__all__ = ["Kernel", "element_types", "kernel_names", "kernel_of"]

elementwise.register_rows()


def kernel_of(op: str) -> Kernel | None:
    """The kernel for instructions called ``op``; of declared operators, that of their formula."""
    return registered(op) or formula.kernel_of(op)


def kernel_names() -> tuple[str, ...]:
    """Every instruction that has a kernel, sorted."""
    return tuple(sorted({*registered_names(), *formula.instructions()}))


def element_types(domain: str, op_type: str) -> frozenset[ir.DataType] | None:
    """The types that the kernel of an operator takes; None for one that is lowered to others."""
    found = kernel_of(f"{domain}::{op_type}" if domain else op_type)
    if found is None:
        return None
    return frozenset(
        dtype
        for dtype, type_ in C_TYPES.items()
        if C_TYPES[type_.computed or dtype].kind in found.kinds
    )
