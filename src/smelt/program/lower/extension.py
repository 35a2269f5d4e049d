"""Lowers operators of other domains: DotGeneral with its dimension numbers as one attribute, all
others as an instruction ``domain::name``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import onnx_ir as ir

from smelt import operators
from smelt.operators.complex_dot import signs_of_rows
from smelt.operators.declare import Attributes, Operator
from smelt.program.dot_dims import DotDims
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.pairs import real_dot


def lower_extension(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a declared operator with its name and attributes, and all inputs as slots."""
    operator = operators.find(node.domain, node.op_type)
    if operator is None:
        raise cx.refuse(
            "its domain declares no such operator, and functions are not inlined here",
            "inline functions first, or register the operator: docs/add-an-operator.md",
        )
    attributes = fitting_attributes(cx, node, operator)
    inputs, outputs = cx.inputs(node), [cx.define(value) for value in node.outputs]
    if operator.key == ("smelt", "DotGeneral"):
        _lower_dot(cx, inputs, outputs, attributes)
        return
    cx.emit(f"{node.domain}::{node.op_type}", inputs, outputs, **attributes)


def _lower_dot(
    cx: ProgramBuilder, inputs: Sequence[int], outputs: Sequence[int], attributes: Attributes
) -> None:
    """Emit a DotGeneral; one of complex numbers reads matrices in place of its right operand."""
    lhs, rhs = inputs
    names = ("lhs_contracting", "rhs_contracting", "lhs_batch", "rhs_batch")
    dims = DotDims(*(_ints(attributes[name]) for name in names))
    if attributes["pairs"]:
        rhs, dims = real_dot(cx, lhs, rhs, dims, signs_of_rows(attributes))
    cx.emit("DotGeneral", (lhs, rhs), outputs, dims=dims, semiring=attributes["semiring"])


def fitting_attributes(cx: ProgramBuilder, node: ir.Node, operator: Operator) -> Attributes:
    """Return the attributes of ``node``; raises Unsupported E201 if the operator's shape rule
    rejects its operands or attributes.

    Shape inference runs that rule, too, but a caller of ``lower`` may not have run it.
    """
    attributes = operator.attributes_of(node)
    try:
        operator.check_operands(node.inputs)
        operator.infer(tuple(node.inputs), attributes)
    except ValueError as error:
        raise cx.refuse(str(error)) from error
    return attributes


def extensions_among(instructions: Iterable[str]) -> frozenset[tuple[str, str]]:
    """Return the (domain, operator) pairs of other domains among ``instructions``, given by
    name."""
    extensions = set()
    for name in instructions:
        domain, _, op_type = name.rpartition("::")
        if domain or name == "DotGeneral":
            extensions.add((domain or "smelt", op_type))
    return frozenset(extensions)


def _ints(value: object) -> tuple[int, ...]:
    """Return ``value`` as a tuple of integers; empty if it is no tuple."""
    return tuple(int(item) for item in value) if isinstance(value, tuple) else ()
