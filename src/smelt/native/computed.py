"""Predicates: whether an instruction has a kernel, now or once symbolic sizes are bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias, cast

from smelt.ir.bounds import Bounds
from smelt.ir.symbolic_dims.dims import symbols_of
from smelt.native.emit import run_time
from smelt.native.kernels import kernel_of
from smelt.native.kernels.instance import Instance
from smelt.program.computed_sizes import Sizes
from smelt.program.instruction import Dim, Instruction, Program
from smelt.program.legality import ASKS
from smelt.program.run_sizes import Size
from smelt.program.size_expressions import size_in

SizeOf: TypeAlias = Callable[[Dim], Dim | Size]

ANY_SIZE = 8
"""A number to try in place of a symbolic size where the value does not matter."""

MOST = 1 << 24
"""The assumed upper bound of a data-dependent size whose capacity is not known yet."""


def refusal(program: Program, instruction: Instruction) -> str | None:
    """Return why no kernel computes an instruction, None if one does."""
    kernel = kernel_of(instruction.op)
    if kernel is None:
        return "no kernel is registered for it"
    instance = Instance(program, instruction)
    if instance.slot(0) is not None and instance.type(0).kind not in kernel.kinds:
        return f"its kernel does not support {instance.type(0).name}"
    if run_time.has_run_sizes(program, instruction):
        unsupported = run_time.refusal(kernel, program, instruction)
    else:
        unsupported = kernel.refuse(instance)
    if unsupported is None or unsupported.startswith(ASKS):
        return unsupported
    return f"its kernel does not support {unsupported}"


def is_computed(program: Program, instruction: Instruction) -> bool:
    """True if a kernel computes the instruction."""
    return refusal(program, instruction) is None


def is_computed_with_bound_sizes(program: Program, instruction: Instruction) -> bool:
    """True if a kernel computes the instruction once each symbolic size is bound to a number.

    The check binds all of them to ``ANY_SIZE``, because kernels refuse types, ranks and attributes,
    hardly ever a size. If a kernel refuses the real size after all, the caller must fall back to
    NumPy.
    """
    return _is_computed_with(program, instruction, lambda dim: ANY_SIZE)


def is_computed_in_runs(bounds: Mapping[str, Bounds]) -> Callable[[Program, Instruction], bool]:
    """Return a predicate: True if a kernel computes an instruction at all sizes within ``bounds``.

    It assumes that a data-dependent size may have any value.
    """
    sizes: Sizes = {
        name: Size.named(f"dim{number}", *ends)
        for number, (name, ends) in enumerate(bounds.items())
    }

    def is_computed_in_all(program: Program, instruction: Instruction) -> bool:
        """True if a kernel computes the instruction with a run-time size for each open size."""
        return _is_computed_with(program, instruction, lambda dim: _in_run(dim, sizes))

    return is_computed_in_all


def _in_run(dim: Dim, sizes: Sizes) -> Dim | Size:
    """Return the run-time size for ``dim``. A symbol that ``sizes`` lacks is added to it."""
    for name in symbols_of(dim) - sizes.keys():
        sizes[name] = Size.named(f"dim{len(sizes)}", 0, MOST)
    size = size_in(dim, sizes)
    if not isinstance(size, int | Size):  # an expression that is not computed at run time
        size = sizes.setdefault(str(dim), Size.named(f"dim{len(sizes)}", 0, MOST))
    return size


def _is_computed_with(program: Program, instruction: Instruction, size_of: SizeOf) -> bool:
    """True if a kernel computes the instruction with ``size_of(dim)`` for each symbolic size."""
    before = {number: program.slots[number] for number in _open_slots(program, instruction)}
    for number, slot in before.items():
        shape = tuple(dim if isinstance(dim, int) else size_of(dim) for dim in slot.shape)
        program.slots[number] = replace(slot, shape=cast(tuple[Dim, ...], shape))
    try:
        return is_computed(program, instruction)
    finally:
        for number, slot in before.items():
            program.slots[number] = slot


def _open_slots(program: Program, instruction: Instruction) -> list[int]:
    """Return the slots of an instruction that have symbolic sizes, each once."""
    used = {slot for slot in (*instruction.inputs, *instruction.outputs) if slot >= 0}
    return [
        slot
        for slot in sorted(used)
        if not all(isinstance(dim, int) for dim in program.slots[slot].shape)
    ]
