"""Replaces extension operators by their bodies of ONNX nodes."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from smelt.extensions import is_foreign
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.pattern import op
from smelt.ir.rewrite import Rewriter
from smelt.ir.rule import Match, Miss, Replacement, Rule
from smelt.ir.same_shape import conflicting_shapes
from smelt.ir.shapes import ShapeInference
from smelt.ir.worklist import Worklist
from smelt.operators.declare import Definition, Operator
from smelt.operators.registry import all_operators


def expand_node(b: Builder, node: ir.Node, operator: Definition) -> tuple[ir.Value, ...] | None:
    """Build the body of ``node`` with ``b``; None, with nothing built, if it has none."""
    built = operator.build_body(b, tuple(node.inputs), operator.attributes_of(node))
    if built is None or len(built) < len(node.outputs):
        return None
    for value, made in zip(node.outputs, built, strict=False):
        if is_foreign(operator.body) and _contradict(value, made):
            raise operator.broken_body(
                f"it gives {made.dtype}{made.shape} for {value.name!r}, and `infer` {value.dtype}"
                f"{value.shape}"
            )
    return built[: len(node.outputs)]


def _contradict(told: ir.Value, made: ir.Value) -> bool:
    dtypes = told.dtype is not None and made.dtype is not None and told.dtype != made.dtype
    return dtypes or conflicting_shapes(told.shape, made.shape)


def expansion_rule(operator: Operator) -> Rule:
    """Return the rule that replaces ``operator`` by its body wherever it has one."""

    def build(match: Match, b: Builder) -> Replacement:
        results = expand_node(b, match.root, operator)
        return Miss("ONNX cannot express this instance") if results is None else results

    name = f"expand_{operator.domain}.{operator.name}"
    pattern = op(operator.name, domain=operator.domain, rest=True)
    return Rule(name, pattern, build, same_shape=True)


def expand(model: ir.Model, operators: Iterable[Operator] | None = None) -> int:
    """Replace every node of ``operators`` (default: all) that has a body; return their number.

    Values must have known dtypes and ranks.
    """
    chosen = all_operators() if operators is None else tuple(operators)
    rules = [expansion_rule(operator) for operator in chosen if operator.body is not None]
    rewriter = Rewriter(model, ShapeInference(model), Constants())
    return Worklist(rewriter, rules).run().fired.total()
