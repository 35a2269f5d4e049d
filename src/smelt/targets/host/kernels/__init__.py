"""The kernels of the host target, one file a family."""

from __future__ import annotations

from smelt.targets.host.kernels import (  # noqa: F401 - each fills the tables
    convolution,
    dot,
    elementwise,
    indexing,
    linalg,
    movement,
    normalization,
    pooling,
    recurrence,
    reduction,
    resample,
)
from smelt.targets.host.kernels.kernel import KERNELS, VIEWS, Call, Kernel, Step, View

__all__ = ["VIEWS", "Call", "Kernel", "Step", "View", "kernel_of"]


def kernel_of(op: str) -> Kernel | None:
    """The kernel of an instruction, or else its row, or the reference of a declared one."""
    return KERNELS.get(op) or elementwise.by_row(op) or linalg.declared(op)
