"""Fuse elementwise instructions into the epilogue of the product that they read.

    before   c = Conv(x, w, b)   s = Add(c, x)   y = Relu(s)
    after    y = Conv(x, w, b, x) with the epilogue Add, Relu

The product's result is then never in memory, and its storage can be that of the side operand.
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

OWN_INPUTS = {"DotGeneral": 2, GEMM: 2}
"""The number of a product's own inputs, 3 by default; side operands come after them."""

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
"""Operators whose last operation is not a multiplication."""


def fuse_epilogues(program: Program) -> None:
    """Move each elementwise instruction into the epilogue of the product that only it reads, in
    place.

    The product moves to the place of its last fused instruction, after the writers of all side
    operands. A product that is an output, or has another reader, stays.
    """
    for body in program.bodies:
        fuse_epilogues(body.program)
    reads = Counter(slot for each in program.instructions for slot in each.inputs)
    reads.update(program.outputs)
    producer_of: dict[int, int] = {}  # slot to index in ``instructions``
    instructions: list[Instruction | None] = []
    for each in program.instructions:
        instruction = each
        producers = [
            producer_of[slot] for slot in each.inputs if slot in producer_of and reads[slot] == 1
        ]
        for index in sorted(producers, reverse=True):
            product = instructions[index]
            assert product is not None  # its only reader has not been moved
            if _may_fuse(program, product, each):
                instructions[index] = None
                instruction = _with_step(product, each)
                break
        producer_of.update((slot, len(instructions)) for slot in instruction.outputs)
        instructions.append(instruction)
    program.instructions = [each for each in instructions if each is not None]


def _may_fuse(program: Program, product: Instruction, each: Instruction) -> bool:
    """True if ``each`` can be a step of the epilogue of ``product``."""
    kernel, product_kernel = kernel_of(each.op), kernel_of(product.op)
    if kernel is None or kernel.element is None or product_kernel is None:
        return False
    slots = [program.slots[slot] for slot in (*each.inputs, *each.outputs) if slot >= 0]
    if len(each.outputs) != 1 or any(C_TYPES[slot.dtype].name != "float" for slot in slots):
        return False
    result = program.slots[product.outputs[0]]
    if not same(result.shape, program.slots[each.outputs[0]].shape) or each.epilogue:
        return False
    if each.op in SUMS and not all(step.op in NO_PRODUCTS for step in product.epilogue[-1:]):
        # A compiler contracts a product and a sum to one operation, rounded once. Then
        # x * x - y * y may be negative for equal x and y, and its root NaN.
        return False
    instance = Instance(program, product)
    shapes = [static(program.slots[slot]) for slot in each.inputs if slot >= 0]
    try:
        return all(product_kernel.supports_side_operand(instance, shape) for shape in shapes)
    except Undecided:
        return False


def _with_step(product: Instruction, each: Instruction) -> Instruction:
    """Return ``product`` with one more epilogue step; absent inputs are -1 to keep positions."""
    inputs = list(product.inputs)
    inputs += [-1] * (OWN_INPUTS.get(product.op, 3) - len(inputs))
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
        product, inputs=tuple(inputs), outputs=each.outputs, epilogue=(*product.epilogue, step)
    )
