"""Lowers elementwise operators with NumPy broadcasting."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.operators.elementwise import ROWS
from smelt.program.instruction import AttributeValue, Dim
from smelt.program.lower.builder import ABSENT, ProgramBuilder
from smelt.program.lower.registry import lowering_of, lowers

VARIADIC = {"Sum": "Add", "Mean": "Add", "Max": "Max", "Min": "Min"}


@lowers(*VARIADIC)
def variadic(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a chain of binary operators, from left to right; Mean divides at the end."""
    slots = cx.inputs(node)
    output = node.outputs[0]
    if len(slots) == 1:
        cx.alias(output, slots[0])
        return
    op, total = VARIADIC[node.op_type], slots[0]
    last = len(slots) - 1 if node.op_type != "Mean" else len(slots)
    for slot in slots[1:last]:
        shape = broadcast(cx, cx.shape(total), cx.shape(slot))
        total = cx.emit_new(op, (total, slot), shape)
    if node.op_type != "Mean":
        cx.emit(op, (total, slots[last]), (cx.define(output),))
        return
    result = cx.define(output)
    count = cx.dtype(result).numpy().type(len(slots))
    cx.emit("Div", (total, cx.constant(np.asarray(count), "count")), (result,))


def broadcast(cx: ProgramBuilder, a: tuple[Dim, ...], b: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Return the broadcast of two shapes; refuses sizes that are not known to broadcast."""
    rank = max(len(a), len(b))
    a_shape, b_shape = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    return tuple(_broadcast_dim(cx, x, y) for x, y in zip(a_shape, b_shape, strict=True))


def _broadcast_dim(cx: ProgramBuilder, x: Dim, y: Dim) -> Dim:
    """Return the size to which ``x`` and ``y`` broadcast; refuses sizes not known to broadcast."""
    if x == 1:
        return y
    if y in (1, x):
        return x
    raise cx.refuse_size(f"sizes {x} and {y} are not known to broadcast")


@lowers("Clip")
def clip(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit Clip: constant bounds become the attributes ``min`` and ``max``; others stay inputs."""
    bounds: list[AttributeValue] = []
    inputs = [cx.slot(node.inputs[0])]
    for index, name in enumerate(("min", "max"), 1):
        source = cx.input(node, index)
        attr = node.attributes.get(name)
        number = attr.as_float() if attr is not None else cx.constants.scalar(source)
        bounds.append(number)
        inputs.append(cx.slot(source) if number is None else ABSENT)
    while inputs[-1] == ABSENT:
        inputs.pop()
    cx.emit("Clip", inputs, (cx.define(node.outputs[0]),), min=bounds[0], max=bounds[1])


@lowers("Cast", "CastLike")
def cast(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a Cast to the element type of the output slot."""
    attributes: dict[str, AttributeValue] = {"saturate": node.attributes.get_int("saturate", 1)}
    cx.emit("Cast", (cx.slot(node.inputs[0]),), (cx.define(node.outputs[0]),), **attributes)


@lowers("Identity", "OptionalGetElement")
def identity(cx: ProgramBuilder, node: ir.Node) -> None:
    """Make the slot of the input that of the output, without an instruction."""
    cx.alias(node.outputs[0], cx.slot(node.inputs[0]))


@lowers("Pow")
def power(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit Pow. An integer to a float power is computed in double precision, then truncated."""
    base, exponent = cx.inputs(node)
    output = node.outputs[0]
    is_integer = not cx.dtype(base).is_floating_point()
    if not is_integer or not cx.dtype(exponent).is_floating_point():
        cx.keep(node, **cx.attributes(node))
        return
    computed_type = ir.DataType.DOUBLE
    operands = [
        cx.emit_new("Cast", (slot,), cx.shape(slot), dtype=computed_type, saturate=1)
        for slot in (base, exponent)
    ]
    shape = broadcast(cx, cx.shape(base), cx.shape(exponent))
    result = cx.emit_new("Pow", operands, shape)
    cx.emit("Cast", (result,), (cx.define(output),), saturate=1)


@lowers("Shrink")
def shrink(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit Shrink; integers are compared and biased in double precision, then truncated."""
    (source,) = cx.inputs(node)
    if cx.dtype(source).is_floating_point():
        cx.keep(node, **cx.attributes(node))
        return
    shape = cx.shape(source)
    widened = cx.emit_new("Cast", (source,), shape, dtype=ir.DataType.DOUBLE, saturate=1)
    bias, lambd = (
        node.attributes.get_float(*name_and_default)
        for name_and_default in (("bias", 0.0), ("lambd", 0.5))
    )
    result = cx.emit_new("Shrink", (widened,), shape, bias=bias, lambd=lambd)
    cx.emit("Cast", (result,), (cx.define(node.outputs[0]),), saturate=1)


@lowers("OptionalHasElement")
def has_element(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a constant: true for a tensor, false for an absent operand."""
    is_present = bool(node.inputs) and node.inputs[0] is not None
    if is_present:
        cx.slot(node.inputs[0])
    cx.alias(node.outputs[0], cx.constant(np.asarray(is_present), "given"))


KEPT = tuple(name for name in ROWS if lowering_of(name) is None)
"""Elementwise operators without a lowering above."""


@lowers(*KEPT)
def pointwise(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the operator itself, with default attributes filled in."""
    cx.keep(node, **cx.attributes(node))
