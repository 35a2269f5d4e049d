"""Recognise masks of scores, whose large numbers stand for minus infinity."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.constants import tensor_of
from smelt.operators.decompositions.row import MOVES
from smelt.targets.coreml.facts import INTEGERS

STEPS = MOVES | {"Cast", "CastLike"}
"""Operators between a mask and the scores that leave its numbers as they are."""
SUMS = frozenset({"Add", "Sub", "Sum"})
READERS = frozenset({"Softmax", "LogSoftmax"})


def is_masked_product(node: ir.Node) -> bool:
    """True if ``node`` multiplies an indicator, such as 1 - mask, by a constant, and all sums of
    its result with scores go to a Softmax.
    """
    if node.domain or node.op_type != "Mul":
        return False
    factors = [value for value in node.inputs if value is not None and tensor_of(value) is None]
    return len(factors) == 1 and _is_indicator(factors[0]) and _reaches_softmax(node, False)


def only_masks_scores(node: ir.Node) -> bool:
    """True if ``node`` moves, sums or chooses numbers, and every path from it leads through a sum
    or a choice to a Softmax. The node itself may be this sum or choice.
    """
    combines = _combines(node, None)
    return (
        not node.domain and (combines or node.op_type in STEPS) and _reaches_softmax(node, combines)
    )


def _reaches_softmax(node: ir.Node, combined: bool) -> bool:
    """True if every path from the results of ``node`` leads to a Softmax, and, unless ``combined``,
    through a sum or a choice.
    """
    pending = [(value, combined) for value in node.outputs]
    seen = set(pending)
    while pending:
        value, is_combined = pending.pop()
        uses = value.uses()
        if value.is_graph_output() or not uses:
            return False
        for reader, index in uses:
            if reader.domain or (reader.op_type in STEPS and index != 0):
                return False
            if reader.op_type in READERS and is_combined:
                continue
            combines = _combines(reader, index)
            if not combines and reader.op_type not in STEPS:
                return False
            following = {(each, is_combined or combines) for each in reader.outputs} - seen
            pending += following
            seen |= following
    return True


def _combines(node: ir.Node, index: int | None) -> bool:
    """True if ``node`` adds its input ``index`` to others, or chooses it by a condition; None
    stands for any of these inputs.
    """
    return node.op_type in SUMS or (node.op_type == "Where" and index != 0)


def _is_indicator(value: ir.Value) -> bool:
    """True if ``value`` is an input, a bool or integer cast to float, or a difference of such a
    value and ones.
    """
    node = value.producer()
    if node is None:
        return value.is_graph_input()
    if node.domain:
        return False
    if node.op_type in STEPS:
        first = node.inputs[0]
        is_whole = first is not None and first.dtype in INTEGERS | {ir.DataType.BOOL}
        return is_whole or (first is not None and _is_indicator(first))
    if node.op_type != "Sub":
        return False
    ones = [tensor_of(each) for each in node.inputs if each is not None]
    computed = [each for each in node.inputs if each is not None and tensor_of(each) is None]
    return (
        len(computed) == 1
        and all(bool((tensor.numpy() == 1).all()) for tensor in ones if tensor is not None)
        and _is_indicator(computed[0])
    )
