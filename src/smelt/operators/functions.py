"""Writes extension operators into a model as ONNX functions, for sessions and on request.

A body depends on attributes, element types and ranks, so each combination that a model uses gets
its own function, unless ranks make no difference: the first keeps the operator's name, later ones
are ``Name_2``, ``Name_3``...

ONNX has overloads for this, but a runtime that ignores them silently computes the wrong function;
the reference evaluator of onnx 1.23 does. ``restore_operators`` undoes everything on loading.

ONNX operators that ONNX Runtime lacks for their element types become function calls in the same
way, and are restored on loading.
"""

from __future__ import annotations

import re

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.fingerprint import fingerprint
from smelt.ir.opset import opset_of
from smelt.ir.value_facts.element_type import ElementTypes
from smelt.operators.built_functions import (
    IN_PLACE_OF,
    MARK,
    Instance,
    built_function,
    instance_of,
)
from smelt.operators.declare import MAX_DEPTH, Definition, endless_body
from smelt.operators.onnxruntime.runtime_gaps import DOMAIN, ROWS, replacement_for
from smelt.operators.registry import find


def attach_functions(
    model: ir.Model, *, fill_gaps: bool = True, of_source: bool = True
) -> tuple[ir.Node, ...]:
    """Add a function for each extension operator in use, and let the nodes call it.

    ``fill_gaps``: also for operators that ONNX Runtime lacks, where element types are known.
    Without ``of_source``, source nodes that the runtime computes wrong are left alone. Operators in
    bodies get functions too, and graphs that call them get the imports.

    Returns the nodes whose operator has no body here, because ONNX cannot express it or because an
    element type or a needed rank is unknown; other runtimes cannot load those. A second call
    changes nothing. Raises InvalidModel E330 for an invalid node, UsageError E645 for an operator
    whose body needs itself.
    """
    restore_operators(model)
    attachment = _Attachment(model, fill_gaps, of_source)
    roots = [(model.graph, model.opset_imports)]
    roots += [(function.graph, function.opset_imports) for function in model.functions.values()]
    bare = [node for graph, imports in roots for node in attachment.attach_below(graph, imports)]
    for added in attachment.functions.values():
        if added is not None:
            model.functions[added.identifier()] = added
    return tuple(bare)


class _Attachment:
    """The functions made for one model, one per instance of an operator."""

    def __init__(self, model: ir.Model, fill_gaps: bool, of_source: bool) -> None:
        """Start without functions; ``in_progress`` names the operators whose bodies are built."""
        self.model = model
        self.fill_gaps = fill_gaps
        self.of_source = of_source
        self.types = ElementTypes(opset_of(model))
        self.functions: dict[Instance, ir.Function | None] = {}
        self.bodies: dict[Instance, list[ir.Function]] = {}
        self.counts: dict[tuple[str, str], int] = {}
        self.in_progress: list[str] = []

    def attach_below(self, root: ir.Graph, imports: dict[str, int]) -> list[ir.Node]:
        """Let each node of ``root`` and its subgraphs call its function; return nodes without
        one."""
        bare = []
        for node in [node for graph in scope.graphs_below(root) for node in graph]:
            operator = self.definition_of(node)
            if operator is None or operator.runtime:
                continue
            if node.op_identifier() in self.model.functions:
                continue
            function = self.function_for(operator, node)
            if function is None:
                if node.domain:
                    bare.append(node)
                continue
            node.domain, node.op_type = function.domain, function.name
            for table in (imports, self.model.opset_imports):
                table.setdefault(operator.domain, operator.version)
        return bare

    def definition_of(self, node: ir.Node) -> Definition | None:
        """Return the definition whose body replaces ``node``; None if the node stays."""
        if node.domain:
            return find(node.domain, node.op_type)
        if not self.fill_gaps:
            return None
        definition = replacement_for(node, self.types, of_source=self.of_source)
        if definition is not None:
            # The body depends on input types, which later nodes cannot infer through a call.
            self.types.note((*node.inputs, *node.outputs))
        return definition

    def function_for(self, operator: Definition, node: ir.Node) -> ir.Function | None:
        """Return the function for ``node``, with the functions that its body needs; None without
        body."""
        instance = instance_of(operator, node)
        if instance in self.functions:
            return self.functions[instance]
        self.in_progress.append(f"{operator.domain}.{operator.name}")
        if len(self.in_progress) > MAX_DEPTH:
            raise endless_body(self.in_progress)
        function = built_function(self.model, operator, node, instance)
        if function is not None and self.attach_below(function.graph, function.opset_imports):
            function = None
        self.in_progress.pop()
        if function is not None:
            function = self.named(function, operator, (instance[:3], _dtypes(node), instance[-1]))
        self.functions[instance] = function
        return function

    def named(
        self, function: ir.Function, operator: Definition, shared_key: Instance
    ) -> ir.Function:
        """Return ``function`` under a new name, or an earlier function with the same body for other
        ranks.

        Functions with the same ``shared_key`` may have the same body; then their digests are
        compared.
        """
        earlier_functions = self.bodies.setdefault(shared_key, [])
        if earlier_functions:
            digest = _body_digest(function.graph)
            for earlier in earlier_functions:
                if _body_digest(earlier.graph) == digest:
                    return earlier
        earlier_functions.append(function)
        function.name = self.name_for(operator)
        return function

    def name_for(self, operator: Definition) -> str:
        """Return the name of the operator, with a number if it is taken."""
        while True:
            count = self.counts[operator.key] = self.counts.get(operator.key, 0) + 1
            name = operator.name if count == 1 else f"{operator.name}_{count}"
            is_taken = (operator.domain, name, "") in self.model.functions
            if not is_taken and (count == 1 or find(operator.domain, name) is None):
                return name


def restore_operators(model: ir.Model) -> int:
    """Turn calls of attached functions back into operators, and drop the functions.

    Only functions marked by ``attach_functions`` whose operator is registered here are touched.
    Returns the number of functions dropped.
    """
    names: dict[ir.OperatorIdentifier, tuple[str, str]] = {}
    for identifier, function in model.functions.items():
        operator = _implemented_operator(function)
        name = function.metadata_props.get(MARK) or function.metadata_props.get(IN_PLACE_OF, "")
        plain = re.fullmatch(rf"{re.escape(name)}(_\d+)?", function.name)
        if operator and plain and not function.overload:
            names[identifier] = operator
    if not names:
        return 0
    for identifier in names:
        del model.functions[identifier]
    for node in scope.nodes(model):
        key = node.op_identifier()
        if key in names:
            node.domain, node.op_type = names[key]
    return len(names)


def _implemented_operator(function: ir.Function) -> tuple[str, str] | None:
    """Return domain and name of the operator that an attached function implements, else None.

    It is an extension operator (``MARK``), or an ONNX operator that ONNX Runtime lacks for some
    element types (``IN_PLACE_OF``).
    """
    name = function.metadata_props.get(MARK, "")
    if name:
        return (function.domain, name) if find(function.domain, name) is not None else None
    name = function.metadata_props.get(IN_PLACE_OF, "")
    return ("", name) if function.domain == DOMAIN and name in ROWS else None


def _dtypes(node: ir.Node) -> tuple[ir.DataType | None, ...]:
    """Return the element types of the inputs of ``node``."""
    return tuple(None if value is None else value.dtype for value in node.inputs)


def _body_digest(graph: ir.Graph) -> bytes:
    """Return a digest of a body that ignores the ranks it was built for."""
    values = (*graph.inputs, *graph.outputs)
    shapes = [value.shape for value in values]
    for value in values:
        value.shape = None
    try:
        return fingerprint(graph)
    finally:
        for value, shape in zip(values, shapes, strict=True):
            value.shape = shape
