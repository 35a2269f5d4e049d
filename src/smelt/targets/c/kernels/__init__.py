"""Kernels: how each instruction becomes a C function. One file a family of operators."""

from smelt.targets.c.kernels import (  # noqa: F401 - each fills the table
    cast,
    clip,
    conv,
    dot,
    elementwise,
    movement,
    normalization,
    pool,
    reduce,
)
from smelt.targets.c.kernels.kernel import Kernel, kernel_names, kernel_of

__all__ = ["Kernel", "kernel_names", "kernel_of"]
