"""Turn an Einsum of two operands into a MatMul, and one that only moves axes into a Transpose.

    before   Einsum<"bhqd,bhkd->bhqk">(x, y)     after   MatMul(x, Transpose<perm=[0,1,3,2]>(y))
    before   Einsum<"bsd,df->bsf">(x, w)         after   MatMul(x, w)
    before   Einsum<"ijbn->bnij">(x)             after   Transpose<perm=[2,3,0,1]>(x)

Other passes can then match attention and weights.

Needs    (1) one summed label, and one label that only the second operand has; the first operand
         has one such label, or several if the second one is a matrix; (2) labels that occur once in
         a term; (3) floats for which ONNX Runtime has a MatMul; (4) equal sizes for each label,
         because an Einsum may broadcast.
Keeps    (1) equations that need more than one Transpose, except next to a Softmax of rank 4 or 5
         (attention).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import same_dim
from smelt.ir.walk import producer_of
from smelt.operators.contraction import Equation, Labels, parse
from smelt.passes.base import rounding, rule_pass

MULTIPLIED = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16)
"""Dtypes of ONNX Runtime's MatMul; its Einsum of bfloat16, from opset 28 on, stays."""

BEFORE_SOFTMAX = ("Mul", "Div", "Add", "Sub", "Where", "Cast", "Max")
"""Operators that scale, mask and bias scores before a Softmax."""

MOST_BEFORE_SOFTMAX = 6
"""Limit of such operators between the scores and their Softmax; longer chains are not followed."""


@rule(op("Einsum", var("x"), var("y")), same_shape=True)
def product(m: Match, b: Builder) -> Replacement:
    """Replace the Einsum by MatMul, with Transposes where operands and result need them."""
    x, y = m["x"], m["y"]
    if x.shape is None or y.shape is None or x.dtype != y.dtype:
        return None
    if x.dtype not in MULTIPLIED:  # needs 3
        return Miss(f"ONNX Runtime has no MatMul of {x.dtype}")
    equation = _equation(m.root, [len(x.shape), len(y.shape)])
    if equation is None:  # needs 2
        return Miss("the equation is invalid, or a label occurs twice in a term")
    if not _sizes_agree(equation, x.shape, y.shape):  # needs 4
        return Miss("the two sizes of a label are not proved equal")
    first, second = equation.terms
    plans = [
        _as_matrices((first, second), equation.out, (0, 1)),
        _as_matrices((second, first), equation.out, (1, 0)),
    ]
    candidates = [plan for plan in plans if plan is not None]
    if not candidates:  # needs 1
        return Miss("the equation is not a product of matrices")
    plan = min(candidates, key=lambda candidate: candidate.moves)
    if plan.moves > 1 and not _is_next_to_softmax(m.root):  # keeps 1
        return Miss("the product needs more than one Transpose")
    values = (x, y)
    left, right = (
        _transposed_to(b, values[i], equation.terms[i], labels)
        for i, labels in zip(plan.order, plan.operands, strict=True)
    )
    return _transposed_to(b, b.op("MatMul", left, right), plan.result, equation.out)


@rule(op("Einsum", var("x")))
def moved_axes(m: Match, b: Builder) -> Replacement:
    """Replace an Einsum of one operand that keeps each axis by a Transpose."""
    shape = m["x"].shape
    equation = _equation(m.root, [len(shape)]) if shape is not None else None
    if equation is None:  # needs 2
        return None
    (labels,) = equation.terms
    if sorted(labels) != sorted(equation.out):
        return Miss("the Einsum sums or repeats an axis")
    return _transposed_to(b, m["x"], labels, equation.out)


@dataclass(frozen=True)
class _Plan:
    """A MatMul that computes an Einsum of two operands.

    ``order``: the places of its left and right operand among those of the Einsum. ``operands`` and
    ``result``: the labels of their axes, in the order that MatMul wants. ``moves``: how many of
    these three need a Transpose, because the Einsum has its axes in another order.
    """

    order: tuple[int, int]
    operands: tuple[Labels, Labels]
    result: Labels
    moves: int


def _equation(node: ir.Node, ranks: Sequence[int]) -> Equation | None:
    """Return the equation of an Einsum; None if it is malformed or repeats a label within a
    term."""
    try:
        equation = parse(node.attributes["equation"].as_string(), ranks)
    except ValueError:
        return None
    return equation if all(len(set(term)) == len(term) for term in equation.terms) else None


def _sizes_agree(equation: Equation, x: ir.Shape, y: ir.Shape) -> bool:
    """True if every label that both operands have is proved to have equal sizes."""
    first, second = equation.terms
    sizes = dict(zip(first, x, strict=True))
    return all(
        label not in sizes or same_dim(sizes[label], size)
        for label, size in zip(second, y, strict=True)
    )


def _as_matrices(terms: Sequence[Labels], out: Labels, order: tuple[int, int]) -> _Plan | None:
    """Return the MatMul of the first of ``terms`` with the second, or None if MatMul cannot do it.

    Its left operand has the labels (batch, rows, summed), its right one (batch, summed, columns):
    ``bij,bjk->bik`` has the batch b, rows i, columns k, and j summed. ``order`` goes into the
    plan: the caller tries both orders, because one of them may need fewer Transposes.
    """
    first, second = terms
    shared = [label for label in first if label in second]
    batch = tuple(label for label in out if label in shared)
    summed = tuple(label for label in shared if label not in out)
    rows = tuple(label for label in out if label in first and label not in second)
    columns = tuple(label for label in out if label in second and label not in first)
    if len(summed) != 1 or len(columns) != 1 or not rows or (batch and len(rows) > 1):
        return None
    left, right = (*batch, *rows, *summed), (*batch, *summed, *columns)
    result = (*batch, *rows, *columns)
    if len(left) != len(first) or len(right) != len(second):
        return None  # a label of one operand only is summed
    moves = sum([left != first, right != second, result != out])
    return _Plan(order, (left, right), result, moves)


def _is_next_to_softmax(node: ir.Node) -> bool:
    """True for the scores or the weighted sum of an attention of rank 4 or 5.

    The weighted sum reads a Softmax; the scores lead to one by operators of BEFORE_SOFTMAX. There a
    MatMul is worth several Transposes, because the attention passes match it.
    """
    shape = node.outputs[0].shape
    if shape is None or len(shape) not in (4, 5):
        return False
    if any(producer_of(value, "Softmax") is not None for value in node.inputs):
        return True
    value = node.outputs[0]
    for _ in range(MOST_BEFORE_SOFTMAX):
        if not scope.has_one_use(value):
            return False
        (reader,) = scope.consumers(value)
        if reader.op_type == "Softmax" or reader.op_type not in BEFORE_SOFTMAX:
            return reader.op_type == "Softmax"
        value = reader.outputs[0]
    return False


def _transposed_to(b: Builder, value: ir.Value, labels: Labels, to: Labels) -> ir.Value:
    """Return ``value``, whose dims are ``labels``, transposed so that they are ``to``."""
    if labels == to:
        return value
    return b.op("Transpose", value, perm=[labels.index(label) for label in to])


einsum_to_matmul = rule_pass(
    "einsum_to_matmul",
    __doc__,
    [product, moved_axes],
    exactness=rounding(8, "kernels of matrix products sum in their own order"),
)
