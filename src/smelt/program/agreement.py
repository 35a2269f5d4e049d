"""Sizes of operands that have to fit together, where a run could be told others.

Shape inference takes operators at their word: of ``MatMul(x[3,N], y[M,2])`` it says ``[3,2]``, and
of a ``Reshape(x[N])`` to four elements ``[4]``. A kernel then would read beyond ``y`` and ``x`` in
a run in which ``M`` is less than ``N``, or ``N`` than 4. So what does not follow from the bounds of
sizes is a condition of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import prod
from typing import TypeAlias, cast

from smelt.errors import Unsupported
from smelt.operators.elementwise import ELEMENTWISE
from smelt.program.condition import Condition
from smelt.program.instruction import DotDims, Instruction, Program
from smelt.program.run_rows import count_rows
from smelt.program.run_sizes import Dim, Size, Undecided, same

Shape: TypeAlias = tuple[Dim, ...]


Pairs: TypeAlias = Iterable[tuple[Dim, Dim]]
Shapes: TypeAlias = list[Shape]


def note_conditions(program: Program, *, certain: bool = True) -> None:
    """Fill in ``conditions``: what has to hold of the sizes of a run, each once, and in bodies of
    control flow what has to hold whenever they run.

    Raises Unsupported E201 for operands that fit together in no run, unless it is not ``certain``
    that the program runs: a branch may be there for other sizes.
    """
    found: dict[str, Condition] = {}
    for instruction in program.instructions:
        for each in _conditions(program, instruction):
            if each.fails and certain:
                raise _never(instruction, each)
            if not each.holds:
                found.setdefault(each.broken, each)
        for body in instruction.bodies:
            note_conditions(body.program, certain=certain and instruction.op != "If")
    program.conditions = tuple(found.values())


def _conditions(program: Program, instruction: Instruction) -> Iterator[Condition]:
    equal = _broadcast if instruction.op in ELEMENTWISE else EQUAL.get(instruction.op)
    fits = AT_MOST.get(instruction.op)
    read = [_shape(program, slot) for slot in instruction.inputs]
    made = [_shape(program, slot) for slot in instruction.outputs]
    for size in (size for shape in made for size in shape if isinstance(size, Size)):
        yield Condition(0, size, or_less=True)
    try:
        for one, other in equal(instruction, read, made) if equal else ():
            yield Condition(one, other)
        for one, other in fits(instruction, read, made) if fits else ():
            yield Condition(one, other, or_less=True)
    except Undecided:
        return  # the kernel is refused for the same question


def _shape(program: Program, slot: int) -> Shape:
    """The shape of a slot; none has no dims, as an absent operand has none."""
    return cast("Shape", program.slots[slot].shape) if slot >= 0 else ()


def _never(instruction: Instruction, condition: Condition) -> Unsupported:
    relation = "no more than" if condition.or_less else "equal to"
    return Unsupported(
        "E201",
        f"the operands of {instruction.op} do not fit together",
        at=f"node {instruction.origin!r}",
        why=f"{_told(condition.size)} is never {relation} {_told(condition.other)}",
        fix="give its operands sizes that its operator takes",
    )


def _told(size: Dim) -> str:
    return size.told if isinstance(size, Size) else str(size)


def _reshaped(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    yield prod(read[0]), prod(made[0])


def _multiplied(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    dims = step.attributes["dims"]
    assert isinstance(dims, DotDims)
    left = (*dims.lhs_batch, *dims.lhs_contracting)
    right = (*dims.rhs_batch, *dims.rhs_contracting)
    return [(read[0][i], read[1][j]) for i, j in zip(left, right, strict=True)]


def _joined(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    axis = step.attributes["axis"]
    return [
        (size, made[0][place])
        for shape in read
        for place, size in enumerate(shape)
        if place != axis
    ]


def _cut(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    cuts = zip(*(step.ints(name) for name in ("starts", "ends", "steps")), strict=True)
    pairs = zip(step.ints("axes"), cuts, strict=True)
    return [(made[0][axis], count_rows(read[0][axis], cut)) for axis, cut in pairs]


def _broadcast(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    """Each dim of an operand is 1, or that of the result."""
    return [
        (size, whole)
        for shape in read
        for size, whole in zip(reversed(shape), reversed(made[0]), strict=False)
        if not same(size, 1)
    ]


def _by_channel(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    return [(shape[0], read[0][1]) for shape in read[1:] if shape]


def _as_last(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    """Scales and shifts of the last dims."""
    return [
        (size, whole)
        for shape in read[1:]
        for size, whole in zip(reversed(shape), reversed(read[0]), strict=False)
        if not same(size, 1)
    ]


def _scattered(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    data, places, updates = read
    return zip(updates, (*places[:-1], *data[cast(int, places[-1]) :]), strict=True)


def _scattered_apart(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    return zip(read[1], read[2], strict=True)


def _inside(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    """Places beside each other along all axes but one."""
    axis = step.attributes["axis"]
    dims = enumerate(zip(read[1], read[0], strict=True))
    return [pair for place, pair in dims if place != axis]


def _of_no_more(step: Instruction, read: Shapes, made: Shapes) -> Pairs:
    return zip(made[0], read[0], strict=True)


Rule: TypeAlias = Callable[[Instruction, Shapes, Shapes], Pairs]

EQUAL: Mapping[str, Rule] = {
    "Reshape": _reshaped,
    "DotGeneral": _multiplied,
    "Concat": _joined,
    "Slice": _cut,
    "BatchNormalization": _by_channel,
    "InstanceNormalization": _by_channel,
    "LayerNormalization": _as_last,
    "RMSNormalization": _as_last,
    "ScatterND": _scattered,
    "ScatterElements": _scattered_apart,
}
"""Sizes that have to be equal, by instruction."""

AT_MOST: Mapping[str, Rule] = {
    "GatherElements": _inside,
    "ScatterElements": _inside,
    "TopK": _of_no_more,
}
"""Sizes of which the first may be no greater, by instruction."""
