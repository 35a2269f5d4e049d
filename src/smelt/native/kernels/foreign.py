"""Kernels of other packages, through the entry point group ``smelt.c.kernels``.

An entry point names one or several ``CKernel``: an operator, its C, and inputs to test it on. Names
and code of a package appear unchanged in the generated file, so a package is trusted like any
installed one. A package that cannot be loaded is skipped with a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from smelt import operators
from smelt.errors import SmeltError, UsageError
from smelt.extensions import Extension, extensions, in_a_line, place_of, warn_left_out
from smelt.native.kernels.foreign_text import kernel_of_text, problems
from smelt.native.kernels.kernel import KERNELS, Kernel
from smelt.operators.declare import AttributeValue, Operator
from smelt.program.run_sizes import Undecided
from smelt.registry import owner_of

ENTRY_POINTS = "smelt.c.kernels"

Argument = TypeVar("Argument")
Returned = TypeVar("Returned")


@dataclass(frozen=True)
class CKernel:
    """The C kernel of ``operator``.

    ``text`` is an expression of the input elements ``{0}``, ``{1}``..., which broadcast, and of
    numeric attributes by name: ``{alpha}``. ``@t`` is the C type and ``@f`` the suffix of
    ``math.h`` functions. The kernel is refused for a node with a non-default attribute that the
    text does not name. If an expression is not enough, ``kernel`` writes its own loops.
    ``examples`` are inputs, and attributes that differ from the defaults, on which ``check_kernel``
    compares the kernel with the operator's reference.

    Raises UsageError E647 if the declaration is wrong.
    """

    operator: Operator
    text: str = ""
    kernel: Kernel | None = None
    examples: tuple[tuple[tuple[np.ndarray, ...], Mapping[str, AttributeValue]], ...] = field(
        default=(), repr=False
    )

    def __post_init__(self) -> None:
        """Check the declaration."""
        fix = "write CKernel(operator, text=...) or CKernel(operator, kernel=...)"
        if not isinstance(self.operator, Operator):
            raise UsageError(
                "E647",
                f"the operator of a CKernel is of type {type(self.operator).__name__}",
                why="an Operator declares what the kernel computes",
                fix=fix,
            )
        if bool(self.text) == (self.kernel is not None):
            raise UsageError(
                "E647",
                f"the C kernel of {self.called} has "
                f"{'both' if self.text else 'neither'} of text and kernel",
                why="exactly one of them gives the C code",
                fix=fix,
            )
        if not self.examples:
            raise UsageError(
                "E647",
                f"the C kernel of {self.called} has no example",
                fix="give it inputs to test it on: examples=(((array,), {}),)",
                why="smelt compares the kernel with its reference on the examples",
            )
        mistakes = [*problems(self.text, self.operator)] if self.text else []
        if mistakes:
            raise UsageError(
                "E647",
                f"the declaration of the C kernel of {self.called} is wrong",
                at=mistakes,
                fix="name inputs as {0}, {1} and attributes as {alpha}, or give it a `kernel`",
                why="the text or the fields have the mistakes above",
            )

    @property
    def called(self) -> str:
        """The operator with its domain, for messages: ``domain.Name``."""
        return f"{self.operator.domain}.{self.operator.name}"

    @property
    def instruction(self) -> str:
        """The name of the instructions that the kernel computes: ``domain::Name``."""
        return f"{self.operator.domain}::{self.operator.name}"


def add(kernel: CKernel, package: str = "") -> None:
    """Let the C engine compute the operator of ``kernel``, which belongs to ``package``.

    Raises UsageError E640 or E651 if another package declares or computes the operator.
    """
    KERNELS.fill()  # Otherwise our own kernels would clash with it later.
    operators.register(kernel.operator, package=package)
    kernel_with_c = kernel.kernel or kernel_of_text(kernel.text, kernel.operator)
    owner = owner_of(kernel.operator.reference, package)
    KERNELS.add(kernel.instruction, _with_reported_errors(kernel.called, kernel_with_c), owner)


def _with_reported_errors(called: str, kernel: Kernel) -> Kernel:
    """Return ``kernel`` with exceptions of its Python functions reported as
    errors of the package."""

    def with_reported_errors(
        function: Callable[[Argument], Returned],
    ) -> Callable[[Argument], Returned]:
        """Return ``function`` with its exceptions reported as UsageError E647."""

        def run(argument: Argument) -> Returned:
            """Return ``function(argument)``; raises UsageError E647 if the function fails."""
            try:
                return function(argument)
            except (SmeltError, Undecided):
                raise
            except Exception as error:
                raise UsageError(
                    "E647",
                    f"the C kernel of {called} fails",
                    at=place_of(error),
                    why=f"{type(error).__name__}: {error}",
                    fix="report it to the authors of the package that adds it: `smelt plugins`",
                ) from error

        return run

    emit, needs, refuse = (
        with_reported_errors(kernel.emit),
        with_reported_errors(kernel.needs),
        with_reported_errors(kernel.refuse),
    )
    return replace(kernel, emit=emit, needs=needs, refuse=refuse)


@KERNELS.when_filled
def load() -> None:
    """Add the kernels of every installed package, with a warning for each package that fails."""
    for extension in extensions(ENTRY_POINTS):
        if not extension.error and (problem := add_all(extension)):
            warn_left_out(extension.name, extension.package, problem)


def add_all(extension: Extension) -> str:
    """Add the kernels of an entry point; return the problem, or an empty string."""
    kernels_loaded = (
        extension.loaded if isinstance(extension.loaded, Iterable) else (extension.loaded,)
    )
    kernels = [*kernels_loaded]
    if not all(isinstance(kernel, CKernel) for kernel in kernels):
        return f"{extension.value} is not a CKernel and not a sequence of them"
    try:
        for kernel in kernels:
            add(kernel, extension.package)
    except SmeltError as error:
        return in_a_line(error)
    return ""
