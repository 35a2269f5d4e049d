"""Let BLAS compute the products that it is faster at than the tiles of the engine's own kernels."""

from __future__ import annotations

from smelt.native.choose import choose
from smelt.native.kernels.blas import GEMM, TRANSPOSED, matrices
from smelt.native.kernels.instance import Instance
from smelt.program.instruction import Program

WORTH = {"float": 1 << 22, "double": 1 << 16}
"""Multiplications of one matrix product from which BLAS may be faster, its call included: doubles
take 1.08 of its time at 32x32x32, 1.30 at 64x64x64.
"""

FEWEST = 8
"""Rows and columns from which it is: a vector times a matrix takes it 2 to 4 times as long."""

LARGEST_LEFT, LONGEST_SUM, LONGEST_TURNED = 1 << 22, 8192, 256
"""What panels and tiles of floats are at least as fast for as BLAS: elements of the left side,
which is read again for each panel; terms of a sum, if a panel of the right side has to be copied;
terms of a sum whose left elements are no neighbours. Measured on a Zen 4, with vectors of 16 and
of 8: products of 64 to 1024 rows take 0.83 to 0.96 of the time of BLAS with a constant right side,
0.90 to 1.0 with another one, and 1.8 at a sum of 1024 such terms.
"""


def call_blas(program: Program) -> None:
    """Turn such DotGenerals into calls, in place, and those of bodies."""
    choose(program, lambda instance: GEMM if _is_worth(instance) else None)


def _is_worth(instance: Instance) -> bool:
    step = instance.instruction
    if step.op != "DotGeneral":
        return False
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
    layout, left, _ = found
    m, n, k = (axis.size for axis in (layout.m, layout.n, layout.k))
    if min(m, n) < FEWEST or m * n * k < WORTH[instance.type(0).name]:
        return False
    is_computed = step.inputs[1] not in instance.program.constants
    return (
        instance.type(0).name == "double"
        or m * k > LARGEST_LEFT
        or (is_computed and k > LONGEST_SUM)
        or (left.flag == TRANSPOSED and k > LONGEST_TURNED)
    )
