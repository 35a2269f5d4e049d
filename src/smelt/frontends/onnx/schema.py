"""Check every node against its operator's schema: counts, attributes, element types."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.frontends.onnx.checks.control_flow import check_body
from smelt.frontends.onnx.checks.walk import place_of_node
from smelt.ir import scope
from smelt.ir.constants import tensor_of
from smelt.ir.opset import versions
from smelt.ir.opsets.withdrawn import is_withdrawn, misfit
from smelt.ir.signature import DOMAINS, Formal, Signature, misfits, signature_of

Types = dict[ir.Value, ir.DataType]
"""Element types that operators give their outputs."""


def check_nodes(model: ir.Model) -> None:
    """Raise InvalidModel for the first node that does not match its schema.

    E307: no such operator. E308: wrong number of inputs or outputs, or wrong attributes. E309:
    element types that do not match.
    """
    roots = [(model.graph, model.opset_imports)]
    roots += [(function.graph, function.opset_imports) for function in model.functions.values()]
    local = {(key[0], key[1]) for key in model.functions}
    for root, imports in roots:
        types: Types = {}
        with_subgraphs: list[ir.Node] = []
        for node in scope.nodes_below(root):
            if node.domain in DOMAINS and (node.domain, node.op_type) not in local:
                _check_node(node, imports.get(node.domain, 1), types)
            if not scope.is_flat(node):
                with_subgraphs.append(node)
        for node in with_subgraphs:
            check_body(node, imports.get("", 1), types)


def _check_node(node: ir.Node, version: int, types: Types) -> None:
    """Raise InvalidModel E307 or E308 if ``node`` does not match its schema; then check types."""
    signature = signature_of(node.op_type, version, node.domain)
    if signature is None and not node.domain and is_withdrawn(node.op_type, version):
        why = misfit(node)
        if why is not None:
            raise _schema_mismatch(node, why)
        return
    if signature is None:
        raise InvalidModel(
            "E307",
            f"opset {version} has no operator {node.op_type}",
            at=place_of_node(node),
            fix="export with the opset that has the operator, or give the node its domain",
            why="the operator set does not define it",
        )
    for why in misfits(node, signature):
        raise _schema_mismatch(node, why)
    _check_types(node, signature, types, version)


def _check_types(node: ir.Node, signature: Signature, types: Types, opset: int) -> None:
    """Raise InvalidModel E309 for a type mismatch; record the types of the outputs in ``types``."""
    bound: dict[str, tuple[ir.DataType, int]] = {}
    for index, value in enumerate(node.inputs):
        formal = _formal(signature.inputs, index)
        dtype = _dtype(value, types)
        if formal is None or dtype is None or not formal.types:
            continue
        if dtype not in formal.types:
            why = f"input {index} is {_name(dtype)}, which the operator does not accept"
            raise _mistyped(node, why, _first_opset_that_accepts(node, index, dtype, opset))
        if formal.variable is not None:
            first, where = bound.setdefault(formal.variable, (dtype, index))
            if first != dtype:
                why = f"input {where} is {_name(first)}, input {index} is {_name(dtype)}"
                raise _mistyped(node, why)
    own_type = _stated_type(node)
    for index, value in enumerate(node.outputs):
        formal = _formal(signature.outputs, index)
        if formal is None:
            continue
        if own_type is not None:
            types[value] = own_type
        elif formal.variable in bound:
            types[value] = bound[formal.variable][0]
        elif len(formal.types) == 1:
            types[value] = next(iter(formal.types))
        declared = value.dtype
        if declared is not None and types.setdefault(value, declared) != declared:
            actual = _name(types[value])
            why = f"output {value.name!r} is declared {_name(declared)}, but is {actual}"
            raise _mistyped(node, why)


def _stated_type(node: ir.Node) -> ir.DataType | None:
    """Return the element type that a Constant or a Cast states by an attribute; else None."""
    if node.op_type == "Constant" and not node.domain:
        tensor = tensor_of(node.outputs[0])
        return tensor.dtype if tensor is not None else None
    to = node.attributes.get("to") if node.op_type == "Cast" and not node.domain else None
    return ir.DataType(to.as_int()) if to is not None and not to.is_ref() else None


def _dtype(value: ir.Value | None, types: Types) -> ir.DataType | None:
    """Return the element type of a tensor as far as it is known, None for other values."""
    if value is None or (value.type is not None and not isinstance(value.type, ir.TensorType)):
        return None
    return types.get(value, value.dtype)


def _formal(formals: Sequence[Formal], index: int) -> Formal | None:
    """Return the formal parameter at ``index``; a variadic last one repeats.

    None beyond the last one.
    """
    if index < len(formals):
        return formals[index]
    return formals[-1] if formals and formals[-1].variadic else None


def _name(dtype: ir.DataType) -> str:
    """Return the name of ``dtype`` in lower case."""
    return dtype.name.lower()


def _schema_mismatch(node: ir.Node, why: str) -> InvalidModel:
    """Return E308 for a node that does not match its schema."""
    return InvalidModel(
        "E308",
        "a node does not fit its operator",
        at=place_of_node(node),
        why=why,
        fix="export the model again, or correct the node",
    )


def _first_opset_that_accepts(
    node: ir.Node, index: int, dtype: ir.DataType, opset: int
) -> int | None:
    """Return the first opset after ``opset`` where input ``index`` accepts ``dtype``, or None."""
    for version in (v for v in versions(node.op_type, node.domain) if v > opset):
        signature = signature_of(node.op_type, version, node.domain)
        formal = None if signature is None else _formal(signature.inputs, index)
        if formal is not None and dtype in formal.types:
            return version
    return None


def _mistyped(node: ir.Node, why: str, since: int | None = None) -> InvalidModel:
    """Return E309, with the opset that accepts the type if there is one."""
    later = "" if since is None else f", or export with opset {since}, which accepts that type"
    return InvalidModel(
        "E309",
        "the element types of a node do not match",
        at=place_of_node(node),
        why=why,
        fix=f"put a Cast between them{later}",
    )
