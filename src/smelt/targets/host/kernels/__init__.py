"""The kernels of the host target, one file a family.

Each file here is imported when the first kernel is asked for; a new one is listed nowhere.
"""

from __future__ import annotations

from smelt.targets.host.kernels.elementwise import by_row
from smelt.targets.host.kernels.kernel import KERNELS, VIEWS, Call, Kernel, Step, View
from smelt.targets.host.kernels.reference import declared

__all__ = ["VIEWS", "Call", "Kernel", "Step", "View", "is_reference", "kernel_of"]


def kernel_of(op: str) -> Kernel | None:
    """The kernel of an instruction, or else its row, or the reference of a declared one."""
    return KERNELS.get(op) or by_row(op) or declared(op)


def is_reference(op: str) -> bool:
    """Whether an instruction has no kernel but the reference of its operator."""
    return KERNELS.get(op) is None and by_row(op) is None
