"""Use BLAS for products that it computes faster than the engine's own micro-kernels."""

from __future__ import annotations

from smelt.native.kernels.blas import GEMM, TRANSPOSED, matrices
from smelt.native.kernels.instance import Instance
from smelt.native.rewrite.choose import choose
from smelt.program.instruction import Program

WORTH = {"float": 1 << 22, "double": 1 << 16}
"""The smallest product, in multiply-adds, for which BLAS may be faster including its call. The own
kernels take 1.08 of its time for doubles at 32x32x32, 1.30 at 64x64x64.
"""

FEWEST = 8
"""The fewest rows and columns: BLAS takes 2 to 4 times as long for a vector times a matrix."""

LARGEST_LEFT, LONGEST_SUM, LONGEST_TRANSPOSED = 1 << 22, 8192, 256
"""Limits up to which the float micro-kernels on packed operands are at least as fast as BLAS: the
number of left elements, which are read again for each packed panel; the length of a sum if the
right operand must be packed at run time; the length of a sum over strided left elements. Measured
on a Zen 4 with vectors of 16 and of 8: products of 64 to 1024 rows take 0.83 to 0.96 of the time of
BLAS with a constant right side, 0.90 to 1.0 with another one, and 1.8 for a strided sum of 1024
terms.
"""


def call_blas(program: Program) -> None:
    """Replace DotGenerals that BLAS computes faster by GEMM, in place, bodies included."""
    choose(program, lambda instance: GEMM if _is_worth(instance) else None)


def _is_worth(instance: Instance) -> bool:
    """True if BLAS computes the product faster: it is a float product above the limits of this
    file.
    """
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
    blas_layout = matrices(instance)
    if blas_layout is None:
        return False
    layout, left, _ = blas_layout
    rows, columns, terms = (axis.size for axis in (layout.m, layout.n, layout.k))
    if min(rows, columns) < FEWEST or rows * columns * terms < WORTH[instance.type(0).name]:
        return False
    is_computed = step.inputs[1] not in instance.program.constants
    return (
        instance.type(0).name == "double"
        or rows * terms > LARGEST_LEFT
        or (is_computed and terms > LONGEST_SUM)
        or (left.flag == TRANSPOSED and terms > LONGEST_TRANSPOSED)
    )
