"""Bodies of extension operators, added wherever a model is written.

No other runtime knows operators of ``smelt`` or of a target, so each is written as its body: in
line, or as an ONNX function. Bodies depend on types of values, which are inferred where they are
missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import onnx_ir as ir

from smelt.errors import ErrorList, Unsupported
from smelt.frontends.onnx.inline import inline_functions
from smelt.ir import scope
from smelt.ir.opset import opset_of
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.value_facts.element_type import ElementTypes
from smelt.operators import attach_functions, find, restore_operators
from smelt.operators.expand import write_in_line
from smelt.operators.onnxruntime.runtime_gaps import replacement_for

FIRST_WITH_FUNCTIONS = 8
"""The first IR version in which models may hold functions."""

DOMAIN = "smelt"


def attach_bodies(
    model: ir.Model, *, fill_gaps: bool = True, of_source: bool = True
) -> tuple[ir.Node, ...]:
    """Give each extension operator of ``model`` a function body; return the nodes without one.

    An undeclared operator in a smelt domain, such as one of a later version, counts as without a
    body; undeclared operators of other domains belong to the user and stay. Functions are inlined
    if types of their nodes depend on the caller. ``fill_gaps`` also gives bodies to operators for
    which ONNX Runtime has no kernel of their element type. ``of_source=False`` excludes nodes of
    the source that ONNX Runtime computes wrong.
    """
    if not _has_extensions(model) and not (fill_gaps and _has_gaps(model, of_source)):
        return ()
    bare = _with_types(
        model, lambda: attach_functions(model, fill_gaps=fill_gaps, of_source=of_source)
    )
    if model.functions:
        model.ir_version = max(model.ir_version, FIRST_WITH_FUNCTIONS)
    return bare


def write_bodies(model: ir.Model, *, functions: bool = False) -> tuple[ir.Node, ...]:
    """Replace extension operators, and operators that ONNX Runtime lacks, by their bodies.

    The nodes of a body replace the operator's node; with ``functions`` each operator becomes a call
    of a model-local function, which some readers of ONNX files do not support. Existing functions
    of the model are kept, as are nodes of the source that ONNX Runtime computes wrong. Returns the
    nodes without a body, like ``attach_bodies``.
    """
    if functions:
        return attach_bodies(model, of_source=False)
    if not _has_extensions(model) and not _has_gaps(model, of_source=False):
        return ()
    return _with_types(model, lambda: write_in_line(model))


def _with_types(model: ir.Model, write: Callable[[], tuple[ir.Node, ...]]) -> tuple[ir.Node, ...]:
    """Call ``write``, which adds bodies to the model, once nodes have the types that it needs.

    ``write`` returns the nodes without a body. If types are missing there, they are inferred and
    ``write`` is called again. Returns the nodes that still have no body, and undeclared operators
    of smelt's domains.
    """
    if any(_depends_on_caller(f.graph) for f in model.functions.values()):
        inline_functions(model)
    bare = write()
    if any(map(_missing_type, bare)):
        restore_operators(model)
        shapes = ShapeInference(model)
        shapes.infer_model()
        bare = write()
        shapes.restore_interface()
    undeclared = [
        node
        for node in scope.nodes(model)
        if _is_ours(node.domain)
        and find(node.domain, node.op_type) is None
        and node.op_identifier() not in model.functions
    ]
    return (*bare, *undeclared)


def refuse_bare(nodes: Iterable[ir.Node]) -> None:
    """Raise an ErrorList of E203 for ``nodes``, which have no body to write."""
    errors = [
        Unsupported(
            "E203",
            f"operator {node.domain}.{node.op_type} cannot be written: it has no body",
            at=f"node {node.name!r}",
            why=_reason(node),
            fix="run it here by smelt.compile(model, target='host'), or keep it for smelt alone "
            "by smelt.save(model, path, keep_bare=True)",
        )
        for node in nodes
    ]
    if errors:
        raise ErrorList(errors)


def _reason(node: ir.Node) -> str:
    """Return the reason that the node has no body, as text of an error."""
    operator = find(node.domain, node.op_type)
    if operator is None:
        return "no installed package declares the operator"
    opset = node.graph.opset_imports.get("") if node.graph is not None else None
    if operator.body is not None and opset is not None and opset < operator.opset:
        return f"its body needs ONNX opset {operator.opset}, and the model has {opset}"
    return _missing_type(node) or "ONNX cannot express it, so no other runtime could load the file"


def _missing_type(node: ir.Node) -> str:
    """Return a sentence that names the missing type or rank that the body depends on, else ""."""
    operator = find(node.domain, node.op_type)
    if operator is not None and operator.body is not None:
        for value in node.inputs:
            if value is not None and value.dtype is None:
                return f"the body depends on the element type of {value.name!r}, which is unknown"
            if value is not None and value.shape is None and not operator.any_rank:
                return f"the body depends on the rank of {value.name!r}, which is unknown"
    return ""


def _is_ours(domain: str) -> bool:
    """True for ``smelt`` and the domains below it."""
    return domain == DOMAIN or domain.startswith(f"{DOMAIN}.")


def _has_extensions(model: ir.Model) -> bool:
    """True if a node is in a smelt domain, or if its operator is declared as an extension."""
    return any(
        node.domain and (_is_ours(node.domain) or find(node.domain, node.op_type) is not None)
        for node in scope.nodes(model)
    )


def _has_gaps(model: ir.Model, of_source: bool) -> bool:
    """True if ONNX Runtime has no kernel, or a wrong one, for a node of ``model``."""
    types = ElementTypes(opset_of(model))
    replacements = (
        replacement_for(node, types, of_source=of_source) for node in scope.nodes(model)
    )
    return any(body is not None for body in replacements)


def _depends_on_caller(graph: ir.Graph) -> bool:
    """True if an extension operator reads values without a type, or attributes of the call."""
    for node in (node for inner in scope.graphs_below(graph) for node in inner):
        if node.domain and find(node.domain, node.op_type) is not None:
            values = [value for value in node.inputs if value is not None]
            lacks_types = any(value.dtype is None or value.shape is None for value in values)
            if lacks_types or any(attribute.is_ref() for attribute in node.attributes.values()):
                return True
    return False
