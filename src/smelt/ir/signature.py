"""Signatures of operators by ONNX's schemas: inputs, outputs, attributes, element types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.attribute_values import misfit_of_values

if TYPE_CHECKING:
    import onnx

DOMAINS = ("", "ai.onnx.ml")
"""Domains whose operators onnx defines; nodes of other domains are not checked."""

_ELEMENT_TYPES = frozenset({"to", "dtype", "output_dtype", "stash_type", "softmax_precision"})
"""Attributes that hold an element type as a number; 0 means that the operator chooses the type."""

_KNOWN_TYPES = frozenset(int(dtype) for dtype in ir.DataType)


@dataclass(frozen=True)
class Formal:
    """One formal parameter: the type variable that it binds, or None, and the allowed element
    types.

    ``types`` is empty for sequences, optionals and maps, which are not checked.
    """

    variable: str | None
    types: frozenset[ir.DataType]
    optional: bool
    variadic: bool


@dataclass(frozen=True)
class Signature:
    """The signature of one operator at one version."""

    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    min_inputs: int
    max_inputs: int
    min_outputs: int
    max_outputs: int
    attributes: dict[str, ir.AttributeType]
    required: tuple[str, ...]


def misfits(node: ir.Node, signature: Signature) -> Iterator[str]:
    """Yield each error in the counts and attributes of ``node`` as a sentence."""
    yield from _misfits_of_counts(node, signature)
    for name, attr in node.attributes.items():
        expected = signature.attributes.get(name)
        if expected is None:
            yield f"{node.op_type} has no attribute {name!r}"
        elif attr.type != expected:
            yield f"attribute {name!r} is {attr.type.name}, not {expected.name}"
        elif name in _ELEMENT_TYPES and expected == ir.AttributeType.INT and not attr.is_ref():
            number = attr.as_int()
            if number not in _KNOWN_TYPES or (name == "to" and number == 0):
                yield f"attribute {name!r} is {number}, which is no element type"
    for name in signature.required:
        if name not in node.attributes:
            yield f"attribute {name!r} is missing"
    if node.op_type == "Constant" and not node.domain and len(node.attributes) != 1:
        yield f"it has {len(node.attributes)} values, not one"
    wrong = misfit_of_values(node)
    if wrong:
        yield wrong


def _misfits_of_counts(node: ir.Node, signature: Signature) -> Iterator[str]:
    """Yield errors in the numbers of inputs and outputs of ``node``, and absent required ones."""
    count = len(node.inputs)
    if not signature.min_inputs <= count <= signature.max_inputs:
        allowed = f"{signature.min_inputs} to {signature.max_inputs}"
        yield f"it has {count} inputs where {node.op_type} takes {allowed}"
    count = len(node.outputs)
    if not signature.min_outputs <= count <= signature.max_outputs:
        allowed = f"{signature.min_outputs} to {signature.max_outputs}"
        yield f"it has {count} outputs where {node.op_type} writes {allowed}"
    if None in node.inputs:
        for formal, value in zip(signature.inputs, node.inputs, strict=False):
            if value is None and not formal.optional and not formal.variadic:
                yield "a required input is left out"
    for formal, output in zip(signature.outputs, node.outputs, strict=False):
        if output.name == "" and not formal.optional and not formal.variadic:
            yield "a required output is left out"


@cache
def signature_of(op_type: str, version: int, domain: str) -> Signature | None:
    """Return the signature of an operator as of ``version``; None if it is unknown or
    deprecated."""
    schema = opset.schema(op_type, version, domain)
    if schema is None or schema.deprecated:
        return None
    constraints = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    return Signature(
        inputs=tuple(_read_formal(p, constraints) for p in schema.inputs),
        outputs=tuple(_read_formal(p, constraints) for p in schema.outputs),
        min_inputs=schema.min_input,
        max_inputs=schema.max_input,
        min_outputs=schema.min_output,
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
    """Return one formal parameter of a schema.

    Its ``variable`` is the type variable that it shares with other parameters, such as ``T``; None
    if its type is independent of theirs.
    """
    from onnx import defs

    option = parameter.option
    variadic = option == defs.OpSchema.FormalParameterOption.Variadic
    name = parameter.type_str
    strings = constraints.get(name, (name,))
    dtypes = [_DTYPES.get(text) for text in strings]
    dtypes_if_known = (
        frozenset() if None in dtypes else frozenset(d for d in dtypes if d is not None)
    )
    shares_variable = name in constraints and (not variadic or parameter.is_homogeneous)
    return Formal(
        name if shares_variable else None,
        dtypes_if_known,
        option == defs.OpSchema.FormalParameterOption.Optional,
        variadic,
    )


_DTYPES = {f"tensor({dtype.name.lower()})": dtype for dtype in ir.DataType}
