"""Replaces extension operators by their bodies of ONNX nodes."""

from __future__ import annotations

from collections.abc import Container, Iterable

import onnx_ir as ir

from smelt.extensions import is_foreign
from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.index import NodeIndex
from smelt.ir.opset import opset_of
from smelt.ir.pattern import op
from smelt.ir.rewrite import Rewriter
from smelt.ir.rule import Match, Miss, Replacement, Rule
from smelt.ir.same_shape import conflicting_shapes
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.value_facts.element_type import ElementTypes
from smelt.ir.worklist import RuleStats, Worklist, replace_or_miss
from smelt.operators.declare import MAX_DEPTH, Definition, Operator, endless_body
from smelt.operators.onnxruntime.runtime_gaps import replacement_for
from smelt.operators.registry import all_operators, find


def expand_node(b: Builder, node: ir.Node, operator: Definition) -> tuple[ir.Value, ...] | None:
    """Build the body of ``node`` with ``b``; None, with nothing built, if it has none."""
    results = operator.build_body(b, tuple(node.inputs), operator.attributes_of(node))
    if results is None or len(results) < len(node.outputs):
        return None
    for value, result in zip(node.outputs, results, strict=False):
        if is_foreign(operator.body) and _contradict(value, result):
            raise operator.broken_body(
                f"it gives {result.dtype}{result.shape} for {value.name!r}, "
                f"and `infer` {value.dtype}{value.shape}"
            )
    return results[: len(node.outputs)]


def _contradict(inferred: ir.Value, built: ir.Value) -> bool:
    """True if the built value has another dtype or shape than the inferred one."""
    dtypes = (
        inferred.dtype is not None and built.dtype is not None and inferred.dtype != built.dtype
    )
    return dtypes or conflicting_shapes(inferred.shape, built.shape)


def expansion_rule(operator: Operator) -> Rule:
    """Return the rule that replaces ``operator`` by its body wherever it has one."""

    def build(match: Match, b: Builder) -> Replacement:
        """Build the body; a Miss if ONNX cannot express it."""
        results = expand_node(b, match.root, operator)
        return (
            Miss("ONNX cannot express it for these attributes, element types and sizes")
            if results is None
            else results
        )

    name = f"expand_{operator.domain}.{operator.name}"
    pattern = op(operator.name, domain=operator.domain, rest=True)
    return Rule(name, pattern, build, same_shape=True)


def expand(model: ir.Model, operators: Iterable[Operator] | None = None) -> int:
    """Replace every node of ``operators`` (default: all) that has a body; return their number.

    Values must have known dtypes and ranks.
    """
    selected = all_operators() if operators is None else tuple(operators)
    rules = [expansion_rule(operator) for operator in selected]
    rewriter = Rewriter(model, ShapeInference(model), Constants())
    return Worklist(rewriter, rules).run().fired.total()


def expand_in_line(
    rewriter: Rewriter,
    stats: RuleStats,
    name: str,
    graphs: Iterable[ir.Graph],
    kept: Container[tuple[str, str]] = (),
    *,
    of_source: bool = False,
) -> None:
    """Replace declared operators and operators that ONNX Runtime lacks by their bodies.

    ``graphs`` are searched, and the bodies as well. Calls of functions of the model, operators in
    ``kept``, and those for which a runtime has kernels stay. So do nodes without a body, or without
    the types that the body depends on, and without ``of_source`` operators of the source that ONNX
    Runtime computes wrong. ``name`` counts replacements and misses in ``stats``. Raises UsageError
    E645 for an operator whose body needs itself.
    """
    model = rewriter.model
    types = ElementTypes(opset_of(model))
    inside: tuple[str, ...] = ()
    pending = [(node, inside) for graph in graphs for node in graph][::-1]
    while pending and not rewriter.exhausted:
        node, inside = pending.pop()
        stays = node in rewriter.dead or node.op_identifier() in model.functions
        operator = None if stays else _replaced_by(node, types, kept, of_source)
        if operator is None:
            continue
        inside = (*inside, f"{operator.domain}.{operator.name}")
        if len(inside) > MAX_DEPTH:
            raise endless_body(inside)
        types.note((*node.inputs, *node.outputs))  # values of functions have no types of their own
        b = rewriter.builder(node, [node], name)
        results = expand_node(b, node, operator)
        if results is None:
            b.discard()
        elif replace_or_miss(rewriter, stats, name, node, results, b, node.op_type):
            new_nodes = [
                new_node
                for created in b.created
                for new_node in (created, *scope.nested_nodes(created))
            ]
            pending += [(new_node, inside) for new_node in reversed(new_nodes)]


def write_in_line(model: ir.Model) -> tuple[ir.Node, ...]:
    """Replace all operators that other runtimes lack, and return the nodes that have no body."""
    shapes = ShapeInference(model)
    rewriter = Rewriter(model, shapes, Constants())
    expand_in_line(rewriter, RuleStats(), "write", [*NodeIndex(model).graphs])
    rewriter.flush()
    shapes.restore_interface()
    _drop_imports(model)
    return tuple(node for node in scope.nodes(model) if _is_bare(node, model))


def _drop_imports(model: ir.Model) -> None:
    """Drop imports of domains whose operators are declared here and no longer in use.

    Some readers of ONNX files refuse a domain that they do not know.
    """
    declared = {operator.domain for operator in all_operators() if not operator.runtime}
    roots = [(model.graph, model.opset_imports)]
    roots += [(function.graph, function.opset_imports) for function in model.functions.values()]
    for graph, imports in roots:
        used = {node.domain for inner in scope.graphs_below(graph) for node in inner}
        if graph is model.graph:
            used |= {function.domain for function in model.functions.values()}
        for domain in imports.keys() & declared - used:
            del imports[domain]


def _is_bare(node: ir.Node, model: ir.Model) -> bool:
    """True if no ONNX runtime can run ``node``: its operator is declared here, without a kernel of
    a runtime and without a function in the model."""
    operator = find(node.domain, node.op_type) if node.domain else None
    return (
        operator is not None
        and not operator.runtime
        and (node.op_identifier() not in model.functions)
    )


def _replaced_by(
    node: ir.Node, types: ElementTypes, kept: Container[tuple[str, str]], of_source: bool
) -> Definition | None:
    """Return the definition that replaces ``node``; None if the node stays."""
    if not node.domain:
        return replacement_for(node, types, of_source=of_source)
    operator = find(node.domain, node.op_type)
    if operator is None or operator.runtime or operator.key in kept:
        return None
    if any(attribute.is_ref() for attribute in node.attributes.values()):
        return None
    operands = [value for value in node.inputs if value is not None]
    are_typed = all(types.of(value) is not None for value in operands)
    are_ranked = operator.any_rank or all(value.shape is not None for value in operands)
    return operator if are_typed and are_ranked else None
