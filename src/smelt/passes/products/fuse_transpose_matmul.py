"""Fold Transposes of the operands into a product of matrices.

    before   w ─> Transpose ─┐                             after   x, w ─> Gemm(transB) ─> y
             x ──────────────┴─> MatMul ─> y

    before   MatMul(Transpose(k), Transpose(q)) ─> Transpose(0, 1, 3, 2) ─> y
    after    MatMul(Transpose(q), Transpose(k)) ─> y, in other orders

A Transpose before a Gemm becomes transA or transB. Operands of higher rank, which Gemm does not
support, are transposed at compile time if they are constant. Einsums of heads in TensorFlow and
Keras have the last form.

Needs    (1) operands of rank 2 in float16, float or double; (2) or a constant that only the
         Transpose reads.
Keeps    (1) permutations other than a swap of two axes, behind a product and before a product of
         rank 2; (2) integers, for which Gemm has no kernels; (3) the Transpose for its other
         readers.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import opset, scope
from smelt.ir.build import Builder
from smelt.ir.node_inputs import optional_input
from smelt.ir.pattern import const, one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import rounding, rule_pass
from smelt.passes.layout.merge_consecutive_transposes import permutation

GEMM = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)
"""Element types for which runtimes have a Gemm."""

_first = op("Transpose", var("first"), name="moved_first", shared=True)  # keeps 3
_second = op("Transpose", var("second"), name="moved_second", shared=True)
_OPERANDS = ((_first, _second), (_first, var("b")), (var("a"), _second))


@rule(one_of(*(op("MatMul", *pair) for pair in _OPERANDS)))
def matmul_of_transposed(m: Match, b: Builder) -> Replacement:
    """Replace MatMul of transposed matrices by Gemm with transA or transB."""
    if any(v is None or v.shape is None or len(v.shape) != 2 for v in m.root.inputs):  # needs 1
        return Miss("an operand is not known to be a matrix")
    if m.root.outputs[0].dtype not in GEMM:  # keeps 2
        return Miss("there is no Gemm for the element type")
    return _gemm(m, b, bias=None, attributes=[])


@rule(one_of(*(op("Gemm", *pair, rest=True) for pair in _OPERANDS)))
def gemm_of_transposed(m: Match, b: Builder) -> Replacement:
    """Fold Transposes of the operands of a Gemm into its flags."""
    kept_attributes = [a for a in m.root.attributes.values() if a.name not in ("transA", "transB")]
    return _gemm(m, b, optional_input(m.root, 2), kept_attributes)


def _gemm(m: Match, b: Builder, bias: ir.Value | None, attributes: list[ir.Attr]) -> Replacement:
    """Return a Gemm of the operands before their Transposes, or a Miss if one moves otherwise.

    transA or transB of each such operand is flipped, because two transpositions cancel.
    ``attributes`` are the others of the Gemm, to which the flags are appended.
    """
    inputs: list[ir.Value | None] = []
    for index, (name, flag) in enumerate((("first", "transA"), ("second", "transB"))):
        moved = m.get(f"moved_{name}")
        if moved is not None and not swaps_matrices(m.node(f"moved_{name}")):  # keeps 1
            return Miss("a Transpose does not swap the two axes of its matrix")
        flipped = bool(opset.attribute(m.root, flag, m.opset)) != (moved is not None)
        inputs.append(m.root.inputs[index] if moved is None else m[name])
        if flipped:
            attributes.append(ir.AttrInt64(flag, 1))
    inputs += [] if bias is None else [bias]
    return b.add(ir.Node("", "Gemm", inputs, attributes))[0]


def swaps_matrices(node: ir.Node) -> bool:
    """True if a Transpose swaps only the last two axes."""
    perm = node.attributes.get("perm")
    source = node.inputs[0]
    if perm is None:
        return source is not None and source.shape is not None and len(source.shape) == 2
    axes = list(perm.as_ints())
    rank = len(axes)
    return rank >= 2 and axes == [*range(rank - 2), rank - 1, rank - 2]


_left, _right = op("Transpose", var("a"), name="left"), op("Transpose", var("b"), name="right")


@rule(op("Transpose", op("MatMul", _left, _right)), same_shape=True)
def flipped_product(m: Match, b: Builder) -> Replacement:
    """Replace Transpose(MatMul(Transpose(a), Transpose(b))) by MatMul of b and a, both
    transposed."""
    left, right = (permutation(m.node(name)) for name in ("left", "right"))
    if left is None or right is None or len(left) != len(right) or len(left) < 2:
        return None
    if not swaps_matrices(m.root):  # keeps 1
        return Miss("the outer Transpose does not swap the last two axes")
    swapped_perms = [(*perm[:-2], perm[-1], perm[-2]) for perm in (right, left)]
    operands = [
        b.op("Transpose", x, perm=perm)
        for x, perm in zip((m["b"], m["a"]), swapped_perms, strict=True)
    ]
    return b.op("MatMul", *operands)


_weight = op("Transpose", const(name="weight", limit=None), name="moved")


@rule(one_of(op("MatMul", _weight, var("b")), op("MatMul", var("a"), _weight)))
def matmul_of_constant(m: Match, b: Builder) -> Replacement:
    """Transpose a constant operand at compile time."""
    weight, array = m["weight"], m.array("weight", limit=None)
    if array is None:
        return Miss("the operand is not constant")
    if weight.is_graph_output() or not scope.has_one_use(weight):  # needs 2
        return Miss("the constant has other readers, so it would be stored twice")
    perm = opset.attribute(m.node("moved"), "perm", m.opset)
    transposed = b.constant(np.ascontiguousarray(array.transpose(perm)), name=weight.name)
    left = m.get("a")  # None if the constant is the left operand
    operands = (transposed, m["b"]) if left is None else (left, transposed)
    return b.op("MatMul", *operands)


fuse_transpose_matmul = rule_pass(
    "fuse_transpose_matmul",
    __doc__,
    [flipped_product, matmul_of_transposed, gemm_of_transposed, matmul_of_constant],
    exactness=rounding(4),
    source="Core ML MIL: common::fuse_transpose_matmul",
)
