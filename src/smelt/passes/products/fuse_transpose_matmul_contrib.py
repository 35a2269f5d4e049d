"""Fold Transposes of the operands into a batched product, ``com.microsoft.FusedMatMul``.

    before   k ─> Transpose(0,1,3,2) ─┐                after   q, k ─> FusedMatMul(transB) ─> y
             q ───────────────────────┴─> MatMul ─> y

For plain matrices, ``fuse-transpose-matmul`` makes a Gemm.

Needs    (1) a target that lists com.microsoft.FusedMatMul; (2) floats of rank 2 or more on both
         sides, and more than 2 on one.
Keeps    (1) permutations that move batches; (2) vectors; (3) integers.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import rounding, rule_pass
from smelt.passes.products.fuse_transpose_matmul import swaps_matrices

FUSED = ("com.microsoft", "FusedMatMul")
"""Domain and type of ONNX Runtime's product that transposes its operands itself."""

FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)
"""Element types for which it has a kernel."""

_first = op("Transpose", var("first"), name="moved_first", shared=True)
_second = op("Transpose", var("second"), name="moved_second", shared=True)


@rule(
    one_of(
        op("MatMul", _first, _second),
        op("MatMul", _first, var("b")),
        op("MatMul", var("a"), _second),
    )
)
def stacks_of_transposed(m: Match, b: Builder) -> Replacement:
    """Replace a batched MatMul of transposed operands by FusedMatMul."""
    ranks = [len(v.shape) if v is not None and v.shape else 0 for v in m.root.inputs]
    if min(ranks) < 2:  # needs 2, keeps 2
        return Miss("an operand is not known to have rank 2 or more")
    if max(ranks) < 3:  # needs 2
        return Miss("neither operand is known to have rank 3 or more")
    if m.root.outputs[0].dtype not in FLOATS:  # keeps 3
        return Miss("there is no FusedMatMul for the element type")
    inputs: list[ir.Value | None] = []
    flags: list[int | None] = []
    for index, name in enumerate(("first", "second")):
        moved = m.get(f"moved_{name}") is not None
        if moved and not swaps_matrices(m.node(f"moved_{name}")):  # keeps 1
            return Miss("a Transpose moves more than the last two axes")
        inputs.append(m[name] if moved else m.root.inputs[index])
        flags.append(1 if moved else None)
    product = b.op(FUSED[1], *inputs, domain=FUSED[0], transA=flags[0], transB=flags[1])
    # Only MatMul's own inference knows which of two symbols a broadcast batch dim has.
    product.shape = m.root.outputs[0].shape
    return product


fuse_transpose_matmul_contrib = rule_pass(
    "fuse_transpose_matmul_contrib",
    __doc__,
    [stacks_of_transposed],
    exactness=rounding(4),
    default=False,
    makes=(FUSED,),  # needs 1
    source="Core ML MIL: common::fuse_transpose_matmul",
)
