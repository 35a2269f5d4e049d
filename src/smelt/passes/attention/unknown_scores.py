"""Tell why the scores before a Softmax are of no form that ``fuse_attention`` knows."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule

MOST_STEPS = 8
"""The most operators between a Softmax and the product of queries and keys."""

MOST_BIASES = 3
"""The most values that are added to scores; the last one may be subtracted instead."""

_KNOWN = {
    **dict.fromkeys(("Add", "Div", "Max", "Mul"), (0, 1)),
    "Sub": (0,),
    "Tanh": (0,),
    "Where": (1, 2),
}
"""Operators of the known forms, and the operands that may be scores."""


@rule(op("MatMul", op("Softmax", var("scores"), name="weights"), var("v")))
def unknown_scores(m: Match, b: Builder) -> Replacement:
    """Return a Miss that names the first operator that no form of attention has."""
    why = _obstacle(m["scores"], m.constants, MOST_STEPS, 0)
    return Miss(why) if why else None


def _obstacle(value: ir.Value, constants: Constants, steps: int, biases: int) -> str | None:
    """Return why the scores ``value`` are of no known form, "" if they are of a known one.

    None if no product of matrices leads to them within ``steps`` operators. ``biases`` counts the
    sums on the way from the Softmax. With several operands, one that is of a known form is enough.
    """
    node = value.producer()
    if node is None or node.domain or steps == 0:
        return None
    if node.op_type == "MatMul":
        return ""
    operands = [(place, v) for place, v in enumerate(node.inputs) if v is not None]
    biases += node.op_type in ("Add", "Sub")
    first_obstacle = None
    for place, operand in operands:
        obstacle = _obstacle(operand, constants, steps - 1, biases)
        if obstacle is None:
            continue
        if obstacle == "":
            obstacle = _misfit(node, place, constants) or ""
        if obstacle == "" and biases > MOST_BIASES:
            obstacle = f"more than {MOST_BIASES} values are added to the scores"
        if obstacle == "":
            return ""
        first_obstacle = first_obstacle or obstacle
    return first_obstacle


def _misfit(node: ir.Node, place: int, constants: Constants) -> str | None:
    """Return why no known form has ``node`` with scores as operand ``place``; None if one has."""
    if place not in _KNOWN.get(node.op_type, ()):
        return f"{node.op_type} stands between the product of queries and keys and the Softmax"
    if node.op_type not in ("Mul", "Div"):
        return None
    if constants.get(node.inputs[1 - place], limit=None) is None:
        return "the scores are multiplied by a value, or divided by one, that is not constant"
    return None
