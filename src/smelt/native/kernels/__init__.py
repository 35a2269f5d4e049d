"""Kernels: how each instruction becomes a C function. One file a family of operators."""

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
    reduce,
    resample,
)
from smelt.native.kernels.kernel import Kernel, element_types, kernel_names, kernel_of

__all__ = ["Kernel", "element_types", "kernel_names", "kernel_of"]
