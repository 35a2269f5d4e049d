"""Let BLAS compute the products that are too large for the tiles of the engine's own kernels."""

from __future__ import annotations

from dataclasses import replace

from smelt.native.kernels import kernel_of
from smelt.native.kernels.blas import GEMM, matrices
from smelt.native.kernels.conv_blas import CONV, products_of
from smelt.native.kernels.instance import Instance
from smelt.program.instruction import Instruction, Program

WORTH = {"float": 1 << 22, "double": 1 << 16}
"""Multiplications of one matrix product from which BLAS is faster, its call included. Measured on a
Zen 3: floats 0.94 of its time at 128x128x128, 1.20 at 256x256x256; doubles 1.08 at 32, 1.30 at 64.
"""

FEWEST = 8
"""Rows and columns from which it is: a vector times a matrix takes it 2 to 4 times as long."""

FEWEST_FILTERS, FEWEST_PIXELS, CONVOLUTION = 16, 32, 1 << 21
"""Filters, terms of a sum and pixels from which it is for a convolution, and multiplications."""


def call_blas(program: Program) -> None:
    """Turn such DotGenerals and Convs into calls, in place, and those of bodies."""
    for body in program.bodies:
        call_blas(body.program)
    program.instructions = [
        replace(step, op=_chosen(Instance(program, step))) for step in program.instructions
    ]


def _chosen(instance: Instance) -> str:
    """The operator that an instruction becomes, which is often its own."""
    op = instance.instruction.op
    if op == "DotGeneral" and _is_worth(instance):
        return GEMM
    return CONV if op == "Conv" and _is_convolution(instance) else op


def _is_convolution(instance: Instance) -> bool:
    """True for one with filters and terms enough; what is refused as a Conv stays one."""
    found = kernel_of("Conv")
    if found is None or found.refuse(instance) is not None:
        return False
    filters, pixels, terms = products_of(instance)
    return (
        min(filters, terms) >= FEWEST_FILTERS
        and pixels >= FEWEST_PIXELS
        and filters * pixels * terms >= CONVOLUTION
    )


def _is_worth(instance: Instance) -> bool:
    step: Instruction = instance.instruction
    if step.attributes.get("semiring", "sum_product") != "sum_product":
        return False
    if (
        instance.program.slots[step.outputs[0]].dtype
        != instance.program.slots[step.inputs[0]].dtype
    ):
        return False
    found = matrices(instance)
    if found is None:
        return False
    m, n, k = (axis.size for axis in (found[0].m, found[0].n, found[0].k))
    return min(m, n) >= FEWEST and m * n * k >= WORTH[instance.type(0).name]
