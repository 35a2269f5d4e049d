"""Kernels of instructions whose sizes each run has of its own.

Kernels are written for numbers, with which a ``Size`` computes as well. One that chooses by a size,
so that its text would be wrong at another, is found out by writing it once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from smelt.errors import InternalError, Unsupported
from smelt.native.capacities import CAPACITIES
from smelt.native.kernels.finish import lost_steps
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import Kernel, KernelContext
from smelt.native.writer import Writer
from smelt.program.instruction import AT_RUN_TIME, FAIL, Instruction, Program
from smelt.program.legality import ASKS
from smelt.program.run_sizes import Size, Undecided, same

_SIZE = re.compile(r"\bdim\d+\b")
_ARRAY = re.compile(r"^ *(?!return\b|else\b)(?:const )?\w+ \w+\[[^\]]*\b(dim\d+)\b", re.M)
"""An array on the stack whose length hangs on a size."""

FIX = "bind that dim to one size, for instance --dim B=1, or use the target 'onnx'"


def sizes_of(program: Program) -> list[str]:
    """The names in C of the sizes of a run, or of a body."""
    return [str(each.size) for each in (*program.given, *program.carried, *program.found)]


def told_sizes(body: Program) -> list[str]:
    """The sizes that ``body`` finds out and has in its results, so that it has to tell them."""
    return sorted({str(each.size) for each in body.found} & _atoms(body, body.outputs))


def has_run_sizes(program: Program, instruction: Instruction) -> bool:
    """True if a run decides a size of an operand or a result."""
    slots = [slot for slot in (*instruction.inputs, *instruction.outputs) if slot >= 0]
    return any(isinstance(dim, Size) for slot in slots for dim in program.slots[slot].shape)


def in_order_of_sizes(given: Program, ordered: Program) -> Program:
    """``ordered``, unless it reads a size before the instruction that finds it: then ``given``.

    Raises Unsupported E201 if that does so, too.
    """
    for program in (ordered, given):
        early = _early_reader(program)
        if early is None:
            return program
    assert early is not None
    raise Unsupported(
        "E201",
        f"operator {early.op} has no kernel in C for sizes that a run decides",
        at=f"node {early.origin!r}",
        why="it has a size that nothing before it finds out",
        fix=FIX,
    )


def _early_reader(program: Program) -> Instruction | None:
    """The first instruction with a size that none before it has found, None if all are known."""
    known: set[str] = set()
    found = {str(each.size) for each in program.found}
    for instruction in program.instructions if found else ():
        new = (_atoms(program, instruction.outputs) & found) - known
        if not (_atoms(program, instruction.inputs) & found) <= known:
            return instruction
        if new and instruction.op not in CAPACITIES:
            return instruction
        known |= new
    return None


def _atoms(program: Program, slots: Iterable[int]) -> set[str]:
    """The sizes of a run that the shapes of ``slots`` are made of."""
    shapes = [program.slots[slot].shape for slot in slots if slot >= 0]
    texts = [str(dim) for shape in shapes for dim in shape if isinstance(dim, Size)]
    return {name for text in texts for name in _SIZE.findall(text)}


def refusal(kernel: Kernel, program: Program, instruction: Instruction) -> str | None:
    """Why ``kernel`` is not right at all sizes within their bounds, None if it is."""
    try:
        why = kernel.refuse(Instance(program, instruction))
        if computes_nothing(program, instruction):
            return why
        if why is None and kernel.needs(Instance(program, instruction)).view_of != 0:
            bodies = tuple(f"body{i}" for i in range(len(instruction.bodies)))
            cx = KernelContext(program, instruction, body_names=bodies, body=Writer(1))
            if not instruction.bodies:
                kernel.emit(cx)
            _check_support(cx)
    except Undecided as error:
        return f"{ASKS} {_in_words(program, error)}"
    return why


def emit(kernel: Kernel, cx: KernelContext) -> None:
    """``kernel.emit``.

    Raises Unsupported E201 if it is not right at all sizes of a run, and InternalError E964 if it
    does not compute a step that was fused into the instruction.
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
            why="the result would be that of the operator without these steps",
            fix="let the kernel apply finish_of, or not say that it computes an epilogue",
        )


def _in_words(program: Program, error: Undecided) -> str:
    """The question, with the names that the model has for sizes."""
    names = {str(each.size): each.name for each in (*program.given, *program.found)}
    return _SIZE.sub(lambda found: names.get(found[0], found[0]), str(error))


def _check_support(cx: KernelContext) -> None:
    """Functions that kernels share are given no sizes of a run, nor are arrays on the stack."""
    array = _ARRAY.search(cx.body.text())
    if array:
        raise Undecided(f"how much {array[1]} is")
    for name, text in cx.support.items():
        read = _SIZE.search(text)
        if read or not name.isidentifier():
            raise Undecided(f"how much {read[0] if read else name} is")


def may_end(instruction: Instruction) -> bool:
    """Whether it, or one in its bodies, ends a run for what data say."""
    return (
        instruction.op in CAPACITIES
        or instruction.op in (FAIL, *AT_RUN_TIME)
        or any(may_end(each) for body in instruction.bodies for each in body.program.instructions)
    )


def computes_nothing(program: Program, instruction: Instruction) -> bool:
    """Whether there is no element to compute, no size to find out, and nothing to fail.

    No kernel is asked to write that, so none looks whether its result is empty.
    """
    outputs = [slot for slot in instruction.outputs if slot >= 0]
    return not may_end(instruction) and all(same(program.slots[slot].size, 0) for slot in outputs)
