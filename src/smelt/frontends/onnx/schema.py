"""Check every node against the schema of its operator: counts, attributes, element types."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.ir import opset, scope
from smelt.ir.constants import tensor_of

if TYPE_CHECKING:
    import onnx

DOMAINS = ("", "ai.onnx.ml")
"""Domains whose operators onnx describes; nodes of others are taken as they are."""

Types = dict[ir.Value, ir.DataType]


@dataclass(frozen=True)
class Formal:
    """One parameter: the type variable that it binds, or None, and the element types it takes.

    ``types`` is empty for sequences, optionals and maps, which are not checked.
    """

    variable: str | None
    types: frozenset[ir.DataType]
    optional: bool
    variadic: bool


@dataclass(frozen=True)
class Signature:
    """What onnx says of one operator at one version."""

    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    min_inputs: int
    max_inputs: int
    max_outputs: int
    attributes: dict[str, ir.AttributeType]
    required: tuple[str, ...]


def check_nodes(model: ir.Model) -> None:
    """Raise InvalidModel for the first node that its schema refuses.

    E307 no such operator, E308 wrong number of inputs or outputs or wrong attributes, E309
    element types that do not go together.
    """
    roots = [(model.graph, model.opset_imports)]
    roots += [(function.graph, function.opset_imports) for function in model.functions.values()]
    local = {(key[0], key[1]) for key in model.functions}
    for root, imports in roots:
        types: Types = {}
        for graph in scope.graphs_below(root):
            for node in graph:
                if node.domain in DOMAINS and (node.domain, node.op_type) not in local:
                    _check_node(node, imports.get(node.domain, 1), types)


def _check_node(node: ir.Node, version: int, types: Types) -> None:
    signature = _signature(node.op_type, version, node.domain)
    if signature is None:
        raise InvalidModel(
            "E307",
            f"opset {version} has no operator {node.op_type}",
            at=_place(node),
            fix="the model may need a newer opset, or the operator lacks its domain",
        )
    _check_counts(node, signature)
    _check_attributes(node, signature)
    _check_types(node, signature, types)


def _check_counts(node: ir.Node, signature: Signature) -> None:
    given = len(node.inputs)
    if not signature.min_inputs <= given <= signature.max_inputs:
        wanted = f"{signature.min_inputs} to {signature.max_inputs}"
        raise _wrong(node, f"it has {given} inputs where {node.op_type} takes {wanted}")
    if len(node.outputs) > signature.max_outputs:
        raise _wrong(node, f"it has {len(node.outputs)} outputs, at most {signature.max_outputs}")
    for formal, value in zip(signature.inputs, node.inputs, strict=False):
        if value is None and not formal.optional and not formal.variadic:
            raise _wrong(node, "a required input is left out")


def _check_attributes(node: ir.Node, signature: Signature) -> None:
    for name, attr in node.attributes.items():
        expected = signature.attributes.get(name)
        if expected is None:
            raise _wrong(node, f"{node.op_type} has no attribute {name!r}")
        if attr.type != expected:
            raise _wrong(node, f"attribute {name!r} is {attr.type.name}, not {expected.name}")
    for name in signature.required:
        if name not in node.attributes:
            raise _wrong(node, f"attribute {name!r} is missing")


def _check_types(node: ir.Node, signature: Signature, types: Types) -> None:
    bound: dict[str, tuple[ir.DataType, int]] = {}
    for index, value in enumerate(node.inputs):
        formal = _formal(signature.inputs, index)
        dtype = _dtype(value, types)
        if formal is None or dtype is None or not formal.types:
            continue
        if dtype not in formal.types:
            raise _mistyped(node, f"input {index} is {_say(dtype)}, which it does not take")
        if formal.variable is not None:
            first, where = bound.setdefault(formal.variable, (dtype, index))
            if first != dtype:
                why = f"input {where} is {_say(first)}, input {index} is {_say(dtype)}"
                raise _mistyped(node, why)
    stated = _stated_type(node)
    for index, value in enumerate(node.outputs):
        formal = _formal(signature.outputs, index)
        if formal is None:
            continue
        if stated is not None:
            types[value] = stated
        elif formal.variable in bound:
            types[value] = bound[formal.variable][0]
        elif len(formal.types) == 1:
            types[value] = next(iter(formal.types))
        declared = value.dtype
        if declared is not None and types.setdefault(value, declared) != declared:
            why = f"output {value.name!r} is declared {_say(declared)}, it is {_say(types[value])}"
            raise _mistyped(node, why)


def _stated_type(node: ir.Node) -> ir.DataType | None:
    """The element type that the node itself states for its output."""
    if node.op_type == "Constant" and not node.domain:
        tensor = tensor_of(node.outputs[0])
        return tensor.dtype if tensor is not None else None
    to = node.attributes.get("to") if node.op_type == "Cast" and not node.domain else None
    return ir.DataType(to.as_int()) if to is not None and not to.is_ref() else None


def _dtype(value: ir.Value | None, types: Types) -> ir.DataType | None:
    if value is None or (value.type is not None and not isinstance(value.type, ir.TensorType)):
        return None
    return types.get(value, value.dtype)


def _formal(formals: Sequence[Formal], index: int) -> Formal | None:
    """The formal of a position; heterogeneous variadic tails bind nothing."""
    if index < len(formals) - 1 or (formals and index == len(formals) - 1):
        return formals[index]
    return formals[-1] if formals and formals[-1].variadic else None


@cache
def _signature(op_type: str, version: int, domain: str) -> Signature | None:
    schema = opset.schema(op_type, version, domain)
    if schema is None or schema.deprecated:
        return None
    constraints = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    return Signature(
        inputs=tuple(_read_formal(p, constraints) for p in schema.inputs),
        outputs=tuple(_read_formal(p, constraints) for p in schema.outputs),
        min_inputs=schema.min_input,
        max_inputs=schema.max_input,
        max_outputs=schema.max_output,
        attributes={
            name: ir.AttributeType[str(attribute.type).rpartition(".")[2]]
            for name, attribute in schema.attributes.items()
        },
        required=tuple(name for name, a in schema.attributes.items() if a.required),
    )


def _read_formal(
    parameter: onnx.defs.OpSchema.FormalParameter, constraints: dict[str, Sequence[str]]
) -> Formal:
    from onnx import defs

    option = parameter.option
    variadic = option == defs.OpSchema.FormalParameterOption.Variadic
    name = parameter.type_str
    strings = constraints.get(name, (name,))
    dtypes = [_DTYPES.get(text) for text in strings]
    known = frozenset() if None in dtypes else frozenset(d for d in dtypes if d is not None)
    binds = name in constraints and (not variadic or parameter.is_homogeneous)
    return Formal(
        name if binds else None,
        known,
        option == defs.OpSchema.FormalParameterOption.Optional,
        variadic,
    )


_DTYPES = {f"tensor({dtype.name.lower()})": dtype for dtype in ir.DataType}


def _say(dtype: ir.DataType) -> str:
    return dtype.name.lower()


def _place(node: ir.Node) -> str:
    return f"node {node.name!r} ({node.op_type})"


def _wrong(node: ir.Node, why: str) -> InvalidModel:
    return InvalidModel("E308", "a node does not fit its operator", at=_place(node), why=why)


def _mistyped(node: ir.Node, why: str) -> InvalidModel:
    return InvalidModel(
        "E309",
        "element types do not go together",
        at=_place(node),
        why=why,
        fix="put a Cast between them",
    )
