"""The NumPy kernels of the host target, one file for each family.

Each file is imported when the first kernel is looked up; no list names the files.
"""

from __future__ import annotations

from smelt.targets.host.kernels.elementwise import by_row
from smelt.targets.host.kernels.kernel import KERNELS, VIEWS, Call, Kernel, Step, View
from smelt.targets.host.kernels.reference import declared

__all__ = ["VIEWS", "Call", "Kernel", "Step", "View", "is_reference", "kernel_of"]


def kernel_of(op: str) -> Kernel | None:
    """Return the kernel of an instruction: registered, elementwise by its row, or the reference."""
    return KERNELS.get(op) or by_row(op) or declared(op)


def is_reference(op: str) -> bool:
    """True if the only kernel of an instruction is the reference of its operator."""
    return KERNELS.get(op) is None and by_row(op) is None
