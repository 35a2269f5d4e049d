"""The form of operators: what ONNX's schemas say of inputs, outputs, attributes, element types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import onnx_ir as ir

from smelt.ir import opset

if TYPE_CHECKING:
    import onnx

DOMAINS = ("", "ai.onnx.ml")
"""Domains whose operators onnx describes; nodes of others are taken as they are."""


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


def misfits(node: ir.Node, signature: Signature) -> Iterator[str]:
    """What is wrong with the counts and attributes of ``node``, each in a sentence."""
    given = len(node.inputs)
    if not signature.min_inputs <= given <= signature.max_inputs:
        wanted = f"{signature.min_inputs} to {signature.max_inputs}"
        yield f"it has {given} inputs where {node.op_type} takes {wanted}"
    if len(node.outputs) > signature.max_outputs:
        yield f"it has {len(node.outputs)} outputs, at most {signature.max_outputs}"
    for formal, value in zip(signature.inputs, node.inputs, strict=False):
        if value is None and not formal.optional and not formal.variadic:
            yield "a required input is left out"
    for name, attr in node.attributes.items():
        expected = signature.attributes.get(name)
        if expected is None:
            yield f"{node.op_type} has no attribute {name!r}"
        elif attr.type != expected:
            yield f"attribute {name!r} is {attr.type.name}, not {expected.name}"
    for name in signature.required:
        if name not in node.attributes:
            yield f"attribute {name!r} is missing"


@cache
def signature_of(op_type: str, version: int, domain: str) -> Signature | None:
    """What onnx says of an operator as of ``version``; None if it has none, or a deprecated one."""
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
