"""Facts about ONNX operators, and queries that hide differences between opsets."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.node_inputs import optional_input

if TYPE_CHECKING:
    import onnx

    from smelt.ir.constants import Constants

RESHAPES = ("Flatten", "Reshape", "Squeeze", "Unsqueeze")
"""Operators that keep the order of all elements."""

MOVEMENT = frozenset(
    {
        *(*RESHAPES, "Identity", "Transpose", "Expand", "Tile", "Slice", "Concat", "Split", "Pad"),
        *("Gather", "GatherElements", "GatherND", "DepthToSpace", "SpaceToDepth"),
        "ReverseSequence",
    }
)
"""Operators that only move or repeat elements."""

RANDOM = frozenset(
    {
        *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        *("Bernoulli", "Multinomial"),
    }
)

REDUCTIONS = frozenset(
    {
        *("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1"),
        *("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"),
    }
)


def is_random(node: ir.Node) -> bool:
    """True if two runs of ``node`` may differ; a Dropout counts if it has a training mode input."""
    if node.domain:
        return False
    if node.op_type == "Dropout":
        training_mode = optional_input(node, 2)
        return training_mode is not None
    return node.op_type in RANDOM


def is_deterministic(node: ir.Node) -> bool:
    """True if equal inputs give equal outputs; unknown domains count as not deterministic."""
    if node.domain not in ("", "ai.onnx.ml", "smelt") or is_random(node):
        return False
    return scope.is_flat(node) or not any(map(is_random, scope.nested_nodes(node)))


def opset_of(model: ir.Model, domain: str = "") -> int:
    """Return the version of ``domain`` that ``model`` imports, 0 if none."""
    return model.opset_imports.get(domain, 0)


OPSET_OF_OTHER_DOMAINS = 21
"""The ONNX opset for models that import none.

Its QuantizeLinear is the first to take all integer widths, which the function bodies of quantized
operators of other domains need."""


def import_onnx(model: ir.Model) -> None:
    """Import ONNX operators into a model that has only other domains, so that rewrites may use
    them."""
    if "" not in model.opset_imports:
        of_functions = (f.opset_imports.get("", 0) for f in model.functions.values())
        model.opset_imports[""] = max(of_functions, default=0) or OPSET_OF_OTHER_DOMAINS


@cache
def operators() -> tuple[str, ...]:
    """Return the names of all operators that ``onnx`` defines, sorted."""
    from onnx import defs

    return tuple(sorted({schema.name for schema in defs.get_all_schemas()}))


def versions(op_type: str, domain: str = "") -> tuple[int, ...]:
    """Return the versions of ``domain`` at which an operator was added or changed."""
    return _history().get((domain, op_type), ())


@cache
def _history() -> dict[tuple[str, str], tuple[int, ...]]:
    """Return the versions of each operator, by domain and name."""
    from onnx import defs

    versions_of: dict[tuple[str, str], set[int]] = {}
    for definition in defs.get_all_schemas_with_history():
        versions_of.setdefault((definition.domain, definition.name), set()).add(
            definition.since_version
        )
    return {key: tuple(sorted(numbers)) for key, numbers in versions_of.items()}


@cache
def domains() -> dict[str, tuple[str, ...]]:
    """Return, by operator name, the domains in which ``onnx`` defines it."""
    from onnx import defs

    domains_of: dict[str, set[str]] = {}
    for definition in defs.get_all_schemas():
        domains_of.setdefault(definition.name, set()).add(definition.domain)
    return {name: tuple(sorted(found_in)) for name, found_in in domains_of.items()}


@cache
def schema(op_type: str, opset: int, domain: str = "") -> onnx.defs.OpSchema | None:
    """Return the schema of an operator as of ``opset``, None if there is none."""
    from onnx import defs

    if not f"{domain}{op_type}".isprintable():  # onnx cannot read unpaired surrogates
        return None
    try:
        return defs.get_schema(op_type, opset, domain)
    except defs.SchemaError:
        return None


def is_deprecated(op_type: str, opset: int) -> bool:
    """True if ONNX withdrew the operator at ``opset`` or earlier."""
    definition = schema(op_type, opset)
    return definition is not None and bool(definition.deprecated)


@cache
def default_attribute(op_type: str, name: str, opset: int, domain: str = "") -> Any:
    """Return the schema's default of an attribute, None if it has none."""
    definition = schema(op_type, opset, domain)
    if definition is None or name not in definition.attributes:
        return None
    proto = definition.attributes[name].default_value
    return ir.serde.deserialize_attribute(proto).value if proto.name else None


@cache
def attribute_names(op_type: str, opset: int) -> tuple[str, ...]:
    """Return the attributes of an ONNX operator by its schema; empty for an unknown operator."""
    definition = schema(op_type, opset)
    return tuple(sorted(definition.attributes)) if definition is not None else ()


def attribute(node: ir.Node, name: str, opset: int) -> Any:
    """Return the value of an attribute or its default; None if it has neither or is a reference."""
    present = node.attributes.get(name)
    if present is not None:
        return None if present.is_ref() else present.value
    return default_attribute(node.op_type, name, opset, node.domain)


def is_default(node: ir.Node, attr: ir.Attr, opset: int) -> bool:
    """True if ``attr``, an attribute of an ONNX ``node``, equals its default."""
    if node.domain or attr.is_ref():
        return False
    default = default_attribute(node.op_type, attr.name, opset)
    return default is not None and _text(attr.value) == _text(default)


def _text(value: Any) -> str:
    """Return an attribute value as text: 0.0 and -0.0 differ, a list and a tuple do not."""
    return repr(tuple(value)) if isinstance(value, list | tuple) else repr(value)


def axes_of(node: ir.Node, constants: Constants, index: int = 1) -> tuple[int, ...] | None:
    """Return the axes in attribute ``axes`` or constant input ``index``; None if not constant.

    Axes are as the node writes them, negative ones included. An empty tuple stands for absent axes;
    their meaning differs by operator.
    """
    attr = node.attributes.get("axes")
    if attr is not None:
        return None if attr.is_ref() else tuple(attr.as_ints())
    if len(node.inputs) <= index or node.inputs[index] is None:
        return ()
    return constants.ints(node.inputs[index])


def reduction_axes(node: ir.Node, constants: Constants) -> tuple[int, ...] | None:
    """Return the axes that a Reduce operator reduces, >= 0 and sorted; None if they are not known.

    Needs the rank of the input. Absent axes mean all, or none with ``noop_with_empty_axes``.
    """
    source = node.inputs[0]
    if source is None or source.shape is None:
        return None
    rank = len(source.shape)
    axes = axes_of(node, constants)
    if axes is None or any(not -rank <= axis < rank for axis in axes):
        return None
    if not axes:
        noop = node.attributes.get("noop_with_empty_axes")
        return () if noop is not None and noop.as_int() else tuple(range(rank))
    return tuple(sorted({axis % rank for axis in axes}))


def keeps_dims(node: ir.Node) -> bool:
    """True if a Reduce operator keeps reduced dims as 1, which is the default."""
    attr = node.attributes.get("keepdims")
    return attr is None or bool(attr.as_int())
