"""Move an Unsqueeze of a scalar result before the arithmetic that computes it.

    before   x: () ─> Add(·, 2) ─> Unsqueeze(0) ─> y: (1)
    after    x: () ─> Unsqueeze(0) ─> Add(·, [2]) ─> y: (1)

For targets without tensors of rank 0. Other readers of the sum get it through a Squeeze.

Needs    (1) a scalar and a constant scalar, in either order, whose result an Unsqueeze reads.
Keeps    (1) scalars without an Unsqueeze; (2) results of rank 1 or more; (3) two computed operands.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import opset, scope
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import EXACT, rule_pass

BINARY = ("Add", "Sub", "Mul", "Div", "Pow", "Mod", "Max", "Min")


@rule(op(BINARY, var("a"), var("b")))
def scalar_arithmetic(m: Match, b: Builder) -> Replacement:
    """Compute on vectors of one element and squeeze the result."""
    if any(_rank(value) != 0 for value in (m["a"], m["b"])):  # needs 1, keeps 2
        return None
    constants = {name: m.array(name) for name in ("a", "b")}
    if sum(array is None for array in constants.values()) != 1:  # keeps 3
        return Miss("both operands are constant, or neither is")
    # keeps 1
    if not any(expands(node, m.constants) for node in scope.consumers(m.root.outputs[0])):
        return Miss("no Unsqueeze reads the result")
    axis = b.const_i64([0])
    operands = [
        b.op("Unsqueeze", m[name], axis) if array is None else b.constant(array.reshape(1))
        for name, array in constants.items()
    ]
    return b.op("Squeeze", b.like(m.root, *operands), axis)


@rule(op("Unsqueeze", op("Squeeze", var("x"), var("axes"), shared=True), rest=True))
def expanded_again(m: Match, b: Builder) -> Replacement:
    """Drop an Unsqueeze that undoes a Squeeze of a vector of one element."""
    return m["x"] if expands(m.root, m.constants) and _rank(m["x"]) == 1 else None


def expands(node: ir.Node, constants: Constants) -> bool:
    """True if ``node`` is an Unsqueeze of a scalar to a vector of one element."""
    source = node.inputs[0] if node.op_type == "Unsqueeze" and not node.domain else None
    return _rank(source) == 0 and opset.axes_of(node, constants) in ((0,), (-1,))


def _rank(value: ir.Value | None) -> int | None:
    """Return the rank of ``value``; None if it is missing or unknown."""
    return len(value.shape) if value is not None and value.shape is not None else None


rank0_expand_dims_swap = rule_pass(
    "rank0_expand_dims_swap",
    __doc__,
    [scalar_arithmetic, expanded_again],
    exactness=EXACT,
    default=False,
    source="Core ML MIL: common::rank0_expand_dims_swap",
)
