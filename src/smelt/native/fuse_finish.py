"""Let what is computed of a product alone, element by element, be computed as it is stored.

    before   c = Conv(x, w, b)   s = Add(c, x)   y = Relu(s)
    after    y = Conv(x, w, b, x) finished by Add and Relu

The result of the product then is never in memory, and its place is that of what is added to it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from smelt.native.kernels import kernel_of
from smelt.native.kernels.blas import GEMM
from smelt.native.kernels.instance import Instance, static
from smelt.native.types import C_TYPES
from smelt.program.instruction import ABSENT, RESULT, Instruction, Program, Step
from smelt.program.run_sizes import Undecided, same

OPTIONAL_INPUTS = {"DotGeneral": 2, GEMM: 2}
"""Inputs that a product may have, 3 unless said: what finishes reads comes after them."""

SUMS = frozenset({"Add", "Sub", "Sum"})
NO_PRODUCTS = SUMS | {
    "Relu",
    "Clip",
    "Max",
    "Min",
    "Abs",
    "Neg",
    "Sqrt",
    "Exp",
    "Tanh",
    "Erf",
    "Sigmoid",
}
"""Operators of which the last operation is no multiplication."""


def fuse_finishes(program: Program) -> None:
    """Move elementwise instructions into the product that alone they read, in place.

    A product is computed where the last of them was, when all that they read is known. One that
    something else reads, or that is returned, stays.
    """
    for body in program.bodies:
        fuse_finishes(body.program)
    reads = Counter(slot for each in program.instructions for slot in each.inputs)
    reads.update(program.outputs)
    maker: dict[int, int] = {}
    kept: list[Instruction | None] = []
    for each in program.instructions:
        instruction = each
        places = [maker[slot] for slot in each.inputs if slot in maker and reads[slot] == 1]
        for place in sorted(places, reverse=True):
            product = kept[place]
            assert product is not None  # what reads it alone has not been moved
            if _may_finish(program, product, each):
                kept[place] = None
                instruction = _finished(product, each)
                break
        maker.update((slot, len(kept)) for slot in instruction.outputs)
        kept.append(instruction)
    program.instructions = [each for each in kept if each is not None]


def _may_finish(program: Program, product: Instruction, each: Instruction) -> bool:
    kernel, producing = kernel_of(each.op), kernel_of(product.op)
    if kernel is None or kernel.element is None or producing is None:
        return False
    slots = [program.slots[slot] for slot in (*each.inputs, *each.outputs) if slot >= 0]
    if len(each.outputs) != 1 or any(C_TYPES[slot.dtype].name != "float" for slot in slots):
        return False
    result = program.slots[product.outputs[0]]
    if not same(result.shape, program.slots[each.outputs[0]].shape) or each.finish:
        return False
    if each.op in SUMS and not all(step.op in NO_PRODUCTS for step in product.finish[-1:]):
        # A compiler makes one operation of a product and a sum, rounded once: then x * x - y * y of
        # equal x and y may be less than 0, and its root NaN.
        return False
    instance = Instance(program, product)
    shapes = [static(program.slots[slot]) for slot in each.inputs if slot >= 0]
    try:
        return all(producing.finishes(instance, shape) for shape in shapes)
    except Undecided:
        return False


def _finished(product: Instruction, each: Instruction) -> Instruction:
    """``product`` with one more step; absent inputs are -1, so that positions mean the same."""
    inputs = list(product.inputs)
    inputs += [-1] * (OPTIONAL_INPUTS.get(product.op, 3) - len(inputs))
    operands = []
    for slot in each.inputs:
        if slot == product.outputs[0]:
            operands.append(RESULT)
        elif slot < 0:
            operands.append(ABSENT)
        else:
            operands.append(len(inputs))
            inputs.append(slot)
    step = Step(each.op, tuple(operands), each.attributes)
    return replace(
        product, inputs=tuple(inputs), outputs=each.outputs, finish=(*product.finish, step)
    )
