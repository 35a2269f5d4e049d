"""Kernels of instructions with run-time sizes.

Kernels are written for numbers, and ``Size`` supports the same arithmetic. A kernel that branches
on a size, so that its text would be wrong for another, is detected by emitting it once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from smelt.errors import InternalError, Unsupported
from smelt.native.capacities import CAPACITIES
from smelt.native.emit.writer import Writer
from smelt.native.kernels.epilogue import lost_steps
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import Kernel, KernelContext
from smelt.program.instruction import DYNAMIC, FAIL, Instruction, Program
from smelt.program.legality import ASKS
from smelt.program.run_sizes import Size, Undecided, same

_SIZE = re.compile(r"\bdim\d+\b")
_ARRAY = re.compile(r"^ *(?!return\b|else\b)(?:const )?\w+ \w+\[[^\]]*\b(dim\d+)\b", re.M)
"""Matches a stack array whose length depends on a size."""

FIX = "bind that dim to one size, for instance --dim B=1, or use the target 'onnx'"


def sizes_of(program: Program) -> list[str]:
    """Return the C names of the run-time sizes of a program or body."""
    return [
        str(each.size)
        for each in (*program.input_sizes, *program.loop_sizes, *program.data_dependent_sizes)
    ]


def returned_sizes(body: Program) -> list[str]:
    """Return the data-dependent sizes in the result shapes of ``body``; its C function returns
    them by pointer, because the caller cannot compute them.
    """
    return sorted(
        {str(each.size) for each in body.data_dependent_sizes} & _size_names(body, body.outputs)
    )


def has_run_sizes(program: Program, instruction: Instruction) -> bool:
    """True if an operand or result has a run-time size."""
    slots = [slot for slot in (*instruction.inputs, *instruction.outputs) if slot >= 0]
    return any(isinstance(dim, Size) for slot in slots for dim in program.slots[slot].shape)


def in_order_of_sizes(as_written: Program, ordered: Program) -> Program:
    """Return ``ordered``, or ``as_written`` if ``ordered`` reads a size before it is computed.

    ``ordered`` is the program in the order that needs the least memory; ``as_written`` is the same
    program in the order of the model's nodes. Raises Unsupported E201 if ``as_written`` also reads
    a size early.
    """
    for program in (ordered, as_written):
        early = _early_reader(program)
        if early is None:
            return program
    assert early is not None
    raise Unsupported(
        "E201",
        f"operator {early.op} has no kernel in C for sizes that a run decides",
        at=f"node {early.origin!r}",
        why="no instruction before it computes one of its sizes",
        fix=FIX,
    )


def _early_reader(program: Program) -> Instruction | None:
    """Return the first instruction that needs a size which no earlier instruction computes, or
    None.
    """
    known: set[str] = set()
    computed = {str(each.size) for each in program.data_dependent_sizes}
    for instruction in program.instructions if computed else ():
        new = (_size_names(program, instruction.outputs) & computed) - known
        if not (_size_names(program, instruction.inputs) & computed) <= known:
            return instruction
        if new and instruction.op not in CAPACITIES:
            # Only operators in CAPACITIES compute a size; this one's result needs it before.
            return instruction
        known |= new
    return None


def _size_names(program: Program, slots: Iterable[int]) -> set[str]:
    """Return the names of the run-time sizes in the shapes of ``slots``: dim0 and dim2 for
    ``(4, dim0 * 2, dim2)``.
    """
    shapes = [program.slots[slot].shape for slot in slots if slot >= 0]
    texts = [str(dim) for shape in shapes for dim in shape]
    return {name for text in texts for name in _SIZE.findall(text)}


def refusal(kernel: Kernel, program: Program, instruction: Instruction) -> str | None:
    """Return why ``kernel`` is not valid at all sizes within bounds, None if it is.

    It is valid if writing its C compares no two sizes whose order is unknown. Kernels of control
    flow are not tried, because the units of their bodies check the instructions inside.
    """
    try:
        why = kernel.refuse(Instance(program, instruction))
        if computes_nothing(program, instruction):
            return why
        # A result that is a view of input 0 needs no C.
        if why is None and kernel.needs(Instance(program, instruction)).view_of != 0:
            bodies = tuple(f"body{i}" for i in range(len(instruction.bodies)))
            cx = KernelContext(
                program, instruction, body_names=bodies, body=Writer(1), is_trial=True
            )
            if not instruction.bodies:
                kernel.emit(cx)
            _check_support(cx)
    except Undecided as error:
        return f"{ASKS} {_in_words(program, error)}"
    return why


def emit(kernel: Kernel, cx: KernelContext) -> None:
    """Write the C of ``cx.instruction`` by ``kernel``.

    Raises Unsupported E201 if the C would not be valid at all run-time sizes, and InternalError
    E964 if the kernel does not compute a fused epilogue step.
    """
    try:
        kernel.emit(cx)
        _check_support(cx)
    except Undecided as error:
        raise Unsupported(
            "E201",
            f"operator {cx.instruction.op} has no kernel in C for sizes that a run decides",
            at=f"node {cx.instruction.origin!r}",
            why=f"{ASKS} {_in_words(cx.program, error)}",
            fix=FIX,
        ) from error
    lost = lost_steps(cx)
    if lost:
        raise InternalError(
            "E964",
            f"the kernel of {cx.instruction.op} does not compute {', '.join(lost)}, fused into it",
            at=f"node {cx.instruction.origin!r}",
            why="the result would lack these steps",
            fix="let the kernel apply epilogue_of, or declare that it has no epilogue",
        )


def _in_words(program: Program, error: Undecided) -> str:
    """Return the text of the undecided comparison with the model's names for sizes."""
    names = {
        str(each.size): each.name for each in (*program.input_sizes, *program.data_dependent_sizes)
    }
    return _SIZE.sub(lambda found: names.get(found[0], found[0]), str(error))


def _check_support(cx: KernelContext) -> None:
    """Raise Undecided if a shared function or a stack array depends on a run-time size.

    The name of a shared function must not contain a size: ``rows_(dim0 * 2)`` is no identifier.
    """
    array = _ARRAY.search(cx.body.text())
    if array:
        raise Undecided(f"how much {array[1]} is")
    for name, text in cx.support.items():
        size = _SIZE.search(text)
        if size:
            raise Undecided(f"how much {size[0]} is")
        if not name.isidentifier():
            raise Undecided(f"how much {name} is")


def may_end(instruction: Instruction) -> bool:
    """True if the instruction, or one in its bodies, may end a run because of values."""
    return (
        instruction.op in CAPACITIES
        or instruction.op in (FAIL, *DYNAMIC)
        or any(may_end(each) for body in instruction.bodies for each in body.program.instructions)
    )


def computes_nothing(program: Program, instruction: Instruction) -> bool:
    """True if all results are empty and the instruction computes no size and cannot fail.

    No C is written for such an instruction, so kernels need not support empty results.
    """
    outputs = [slot for slot in instruction.outputs if slot >= 0]
    return not may_end(instruction) and all(same(program.slots[slot].size, 0) for slot in outputs)
