"""Fuse elementwise instructions into one loop whose intermediates no other instruction reads."""

from __future__ import annotations

from collections import defaultdict

from smelt.native.kernels.fused import MAP, is_elementwise
from smelt.program.instruction import Instruction, Program

MOST_PARTS, MOST_INPUTS = 32, 12
"""The most steps and inputs of a group: beyond them, values no longer stay in registers."""


def fuse_elementwise(program: Program) -> None:
    """Replace groups of elementwise instructions by MAP instructions, in place, bodies included.

    An instruction joins the group of its readers if all readers are in one group, and its result
    has the group's shape and is no output of the program. So no element is computed twice, and a
    group stores one result.
    """
    for body in program.bodies:
        fuse_elementwise(body.program)
    members = _groups(program)
    inner = {index for last, group in members.items() for index in group if index != last}
    program.instructions = [
        _fused_step([program.instructions[i] for i in sorted(members.get(index, [index]))])
        for index in range(len(program.instructions))
        if index not in inner
    ]


def _groups(program: Program) -> dict[int, list[int]]:
    """Return the members of each group by its last member, as indices of instructions.

    Instructions are visited from the last to the first, so the group of each reader is known.
    """
    readers: dict[int, set[int]] = defaultdict(set)
    for index, step in enumerate(program.instructions):
        for slot in step.inputs:
            readers[slot].add(index)
    group_of: dict[int, int] = {}
    members: dict[int, list[int]] = {}
    outputs = set(program.outputs)
    for index in range(len(program.instructions) - 1, -1, -1):
        step = program.instructions[index]
        if not is_elementwise(program, step):
            continue
        result = step.outputs[0]
        groups = {group_of.get(reader) for reader in readers[result]}
        root = groups.pop() if len(groups) == 1 and result not in outputs else None
        if root is None or not _joins(program, members[root], index):
            root = index
            members[root] = []
        members[root].append(index)
        group_of[index] = root
    return members


def _joins(program: Program, group: list[int], index: int) -> bool:
    """True if instruction ``index`` has the shape of ``group``, which stays small with it."""
    steps = [program.instructions[i] for i in (*group, index)]
    shapes = {program.slots[step.outputs[0]].shape for step in (steps[0], steps[-1])}
    if len(shapes) > 1 or len(steps) > MOST_PARTS:
        return False
    return len(_inputs(steps)) <= MOST_INPUTS


def _inputs(steps: list[Instruction]) -> tuple[int, ...]:
    """Return the slots that a group reads from outside, each once, in the order of reading."""
    results = {slot for step in steps for slot in step.outputs}
    read = (slot for step in steps for slot in step.inputs)
    return tuple(dict.fromkeys(slot for slot in read if slot >= 0 and slot not in results))


def _fused_step(steps: list[Instruction]) -> Instruction:
    """Return one instruction that computes ``steps``."""
    return as_group(steps) if len(steps) > 1 else steps[0]


def as_group(steps: list[Instruction]) -> Instruction:
    """Return one MAP instruction that computes ``steps`` and stores the last result."""
    last = steps[-1]
    return Instruction(MAP, _inputs(steps), last.outputs, origin=last.origin, parts=tuple(steps))
