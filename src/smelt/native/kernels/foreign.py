"""Kernels from other packages, by the entry point group ``smelt.c.kernels``.

An entry point names a ``CKernel`` or a sequence of them: an operator, how it is written in C, and
inputs to test it on. Names and code of a package stand in the generated file as they are, so a
package is trusted as any other that is installed; one that cannot be loaded is left out with a
warning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from smelt import operators
from smelt.errors import UsageError
from smelt.extensions import extensions
from smelt.native.kernels.elementwise import emit_each, in_place
from smelt.native.kernels.kernel import KERNELS, Emit, Kernel, KernelContext
from smelt.native.types import fill_types
from smelt.operators.declare import AttributeValue, Operator
from smelt.registry import owner_of

ENTRY_POINTS = "smelt.c.kernels"


@dataclass(frozen=True)
class CKernel:
    """``operator`` in C.

    ``text`` is an expression of the elements ``{0}``, ``{1}``... of the inputs, which broadcast;
    ``@t`` is the C type and ``@f`` the suffix of functions of ``math.h``. Where that is not enough,
    ``kernel`` writes loops of its own instead. ``examples`` are inputs, and attributes where they
    are not the defaults, on which ``check_kernel`` holds it against the operator's reference.
    """

    operator: Operator
    text: str = ""
    kernel: Kernel | None = None
    examples: tuple[tuple[tuple[np.ndarray, ...], Mapping[str, AttributeValue]], ...] = field(
        default=(), repr=False
    )

    def __post_init__(self) -> None:
        if not isinstance(self.operator, Operator) or bool(self.text) == (self.kernel is not None):
            raise UsageError("E647", "a CKernel has an Operator, and either a text or a kernel")
        if not self.examples:
            raise UsageError(
                "E647",
                f"the C kernel of {self.operator.domain}.{self.operator.name} has no example",
                fix="give it inputs to test it on: examples=(((array,), {}),)",
            )

    @property
    def instruction(self) -> str:
        """The name of instructions that it computes."""
        return f"{self.operator.domain}::{self.operator.name}"


def add(kernel: CKernel) -> None:
    """Let target ``c`` compute the operator of ``kernel``.

    Raises UsageError E640 or E651 if another package declares the operator or computes it.
    """
    operators.register(kernel.operator)
    written = kernel.kernel or Kernel(_written(kernel.text), in_place)
    KERNELS.add(kernel.instruction, written, owner_of(kernel.operator.reference))


def _written(text: str) -> Emit:
    def emit(cx: KernelContext) -> None:
        emit_each(cx, fill_types(text, cx.type(0)))

    return emit


def load() -> None:
    """Add the kernels of every installed package."""
    for found in extensions(ENTRY_POINTS):
        loaded = () if found.error else found.loaded
        several = loaded if isinstance(loaded, Iterable) else (loaded,)
        for kernel in several:
            if not isinstance(kernel, CKernel):
                raise UsageError(
                    "E647",
                    f"entry point {found.name!r} of {ENTRY_POINTS} is no kernel",
                    at=found.package,
                    fix="let it name a CKernel or a sequence of them",
                )
            add(kernel)


load()
