"""Fuse a reduction with the elementwise instructions that compute its operand.

    before   d = Sub(x, y)   s = Mul(d, d)   r = ReduceSum(s)
    after    r = MapReduce(x, y)

The reduced operand, often many times as large as all inputs, is then never in memory.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from smelt.native.kernels.fused import MAP, is_elementwise
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.reduced_map import MAP_REDUCE, map_loops_of, schedule_of
from smelt.native.kernels.reduction_table import FLOAT_REDUCTIONS
from smelt.native.rewrite.fuse_elementwise import as_group
from smelt.native.types import C_TYPES
from smelt.program.instruction import Instruction, Program


def fuse_reductions(program: Program) -> None:
    """Replace reductions of elementwise results by MapReduce, in place, bodies included."""
    for body in program.bodies:
        fuse_reductions(body.program)
    reads = Counter(slot for step in program.instructions for slot in step.inputs)
    reads.update(program.outputs)
    producer_of = {slot: step for step in program.instructions for slot in step.outputs}
    joined: set[int] = set()
    remaining: list[Instruction] = []
    for step in program.instructions:
        producer = producer_of.get(step.inputs[0]) if step.op in FLOAT_REDUCTIONS else None
        if producer is None or reads[step.inputs[0]] > 1 or not _may_join(program, producer, step):
            remaining.append(step)
            continue
        joined.add(id(producer))
        remaining.append(_fused_reduction(producer, step))
    program.instructions = [step for step in remaining if id(step) not in joined]


def _may_join(program: Program, elementwise: Instruction, step: Instruction) -> bool:
    """True if MapReduce can compute ``step``, a reduction of the result of ``elementwise``."""
    if elementwise.op != MAP and not is_elementwise(program, elementwise):
        return False
    slots = [
        program.slots[slot] for slot in (*elementwise.inputs, *elementwise.outputs, *step.outputs)
    ]
    if not all(isinstance(size, int) for slot in slots for size in slot.shape):
        return False
    operand, result = program.slots[elementwise.outputs[0]], slots[-1]
    if C_TYPES[result.dtype].kind != "float" or not operand.size:
        return False
    cx = KernelContext(program, _fused_reduction(elementwise, step))
    return schedule_of(map_loops_of(cx), cx.output().name) is not None


def _fused_reduction(elementwise: Instruction, step: Instruction) -> Instruction:
    """Return the MapReduce of the instruction ``elementwise`` and the reduction ``step``."""
    group = elementwise if elementwise.op == MAP else as_group([elementwise])
    attributes = {**group.attributes, "reduction": step.op, "axes": step.ints("axes")}
    return replace(
        group, op=MAP_REDUCE, outputs=step.outputs, origin=step.origin, attributes=attributes
    )
