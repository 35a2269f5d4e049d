"""Drop initial states of zeros, the default of recurrent layers.

    before   LSTM(x, W, R, B, , Expand(0, [1, batch, 5]), zeros) ─> y
    after    LSTM(x, W, R, B) ─> y

PyTorch's exporters write such states, with a computed size if the batch dim is symbolic.

Needs    (1) a state of zeros: a constant, a ConstantOfShape, or elements of these, joined or not.
Keeps    (1) -0, which would be the last state of an empty sequence. A state whose size differs from
         the batch no longer causes an error.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Replacement, rule
from smelt.ir.walk import producer_of
from smelt.passes.base import EXACT, rule_pass

_STATES = (5, 6)
"""Indexes of the inputs for the initial state, and for the initial cell of an LSTM."""

_MOVES = (
    *("Transpose", "Unsqueeze", "Squeeze", "Reshape", "Expand", "Slice", "Gather", "Tile"),
    *("Flatten", "Split", "Identity"),
)
"""Operators that only move elements of their first input."""

MOST_OPERATORS = 6
"""Limit of operators between a state and its zero; exporters write at most four."""


@rule(op(["LSTM", "GRU", "RNN"], var("x"), rest=True), same_shape=True)
def state_of_zeros(m: Match, b: Builder) -> Replacement:
    """Remove the state inputs that are zeros."""
    node = m.root
    operands = [
        None if index in _STATES and _is_zero(value, m) else value  # needs 1
        for index, value in enumerate(node.inputs)
    ]
    if operands == list(node.inputs):
        return None
    while operands[-1] is None:
        operands.pop()
    attributes = list(node.attributes.values())
    return b.add(ir.Node("", node.op_type, operands, attributes, num_outputs=len(node.outputs)))


def _is_zero(value: ir.Value | None, m: Match, depth: int = 0) -> bool:
    """True if all elements are known to be +0, from a constant or ConstantOfShape that is moved.

    ``depth`` counts the operators between them and the state.
    """
    array = m.array(value)
    if array is not None:
        return m.constants.is_filled(value, 0) and not np.signbit(array).any()  # keeps 1
    node = producer_of(value, "Concat", "ConstantOfShape", *_MOVES)
    if node is None or depth == MOST_OPERATORS:
        return False
    if node.op_type == "ConstantOfShape":
        filled = node.attributes.get("value")
        return filled is None or _is_plain_zero(filled.as_tensor())
    operands = set(node.inputs) if node.op_type == "Concat" else {node.inputs[0]}
    return all(_is_zero(operand, m, depth + 1) for operand in operands)


def _is_plain_zero(tensor: ir.TensorProtocol) -> bool:
    """True if all elements are +0, as the default is; -0 would change the sign of a zero."""
    array = np.asarray(tensor.numpy(), np.float64)
    return not array.any() and not np.signbit(array).any()


drop_zero_state = rule_pass("drop_zero_state", __doc__, [state_of_zeros], exactness=EXACT)
