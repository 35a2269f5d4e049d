"""Divide an activation by one number per channel, in the constants of its producer if possible.

    before   x ─> LayerNormalization(gain, bias) ─> y ─> MatMul(w)
    after    x ─> LayerNormalization(gain / s, bias / s) ─> y / s ─> MatMul(s * w)

``scaling.py`` asks for it, so that large channels do not set the step of all others. All ``s`` are
positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.node_inputs import optional_input
from smelt.ir.shapes.inference import ShapeInference
from smelt.precision.int8.candidates import Weight, operand_array, weight_of

NORMS = frozenset({"LayerNormalization", "RMSNormalization"})


class Constant(NamedTuple):
    """A constant operand of ``node``, at position ``operand``; ``axis`` is that of the channels."""

    node: ir.Node
    operand: int
    axis: int


def divide_activation(
    model: ir.Model, products: Sequence[ir.Node], scale: np.ndarray, *, may_add: bool = True
) -> bool:
    """Divide the first operand of ``products`` by ``scale``, and multiply their weights by it.

    ``scale`` has a number for each channel. Without constants that can take the division, a Mul
    stands in front of the products if ``may_add``; else nothing changes. Returns whether the model
    changed.
    """
    constants = Constants()
    source = products[0].inputs[0]
    assert source is not None
    places = _constants_of_value(source, set(products), constants, len(scale))
    if places is None and not may_add:
        return False
    b = Builder(model, model.graph, ShapeInference(model), before=products[0])
    for node in products:
        weight = weight_of(node, constants)
        assert isinstance(weight, Weight)
        _multiply(b, constants, Constant(node, 1, weight.inner), scale)
    divided = (1 / scale).astype(np.float32)
    for place in places or ():
        _multiply(b, constants, place, divided)
    if places is None:
        value = b.op("Mul", source, b.constant(divided, name=f"{source.name}_factors"))
        value.name = b.free_name(f"{source.name}_scaled")
        for node in products:
            node.replace_input_with(0, value)
    return True


def _multiply(b: Builder, constants: Constants, place: Constant, factors: np.ndarray) -> None:
    """Give the node at ``place`` a copy of its constant times ``factors`` along the axis."""
    old = place.node.inputs[place.operand]
    assert old is not None
    array = _array(place.node, place.operand, constants)
    assert array is not None
    shape = [-1 if axis == place.axis else 1 for axis in range(array.ndim)]
    made = np.ascontiguousarray(array * factors.reshape(shape), np.float32)
    new = b.constant(made, name=b.free_name(f"{old.name}_scaled"))
    place.node.replace_input_with(place.operand, new)


def _array(node: ir.Node, index: int, constants: Constants) -> np.ndarray | None:
    """Return the constant operand as ``node`` reads it, None if it is no float32 constant."""
    if index == 1 and node.op_type in ("MatMul", "Gemm"):
        weight = weight_of(node, constants)
        return operand_array(weight, constants) if isinstance(weight, Weight) else None
    array = constants.get(optional_input(node, index), None)
    return array if array is not None and array.dtype == np.float32 else None


def _constants_of_value(
    value: ir.Value, readers: set[ir.Node], constants: Constants, count: int
) -> list[Constant] | None:
    """Return the constants to divide so that ``value`` is divided; None if there are none.

    The ``count`` channels of ``value`` are its last axis. Only ``readers`` may read it, all as
    their first operand: others need the undivided value.
    """
    node = value.producer()
    alone = all(use.node in readers and use.idx == 0 for use in value.uses())
    if node is None or node.domain or value.is_graph_output() or not alone:
        return None
    if len(node.outputs) != 1 and any(each.uses() for each in node.outputs[1:]):
        return None
    return _constants_of_result(node, constants, count)


def _constants_of_result(node: ir.Node, constants: Constants, count: int) -> list[Constant] | None:
    """Return the constants to divide so that the result of ``node`` is divided, None without.

    They are operands of ``node``, or of the nodes before it. A norm has gain and bias; Relu passes
    positive factors on; of a Mul, one operand is divided; of an Add with a constant, both.
    """
    if node.op_type in NORMS:
        shape = node.inputs[0].shape if node.inputs[0] is not None else None
        axis = node.attributes.get_int("axis", -1)
        if axis != -1 and (shape is None or axis != len(shape) - 1):
            return None  # a gain over several axes has no axis of channels alone
        return _vector_operands(node, (1, 2), constants, count)
    if node.op_type == "Relu":
        return _constants_of_operand(node, 0, constants, count)
    if node.op_type == "Mul":
        for index in (0, 1):
            places = _vector_operands(node, (index,), constants, count)
            places = places or _constants_of_operand(node, index, constants, count)
            if places:
                return places
        return None
    if node.op_type == "Add":
        for index in (0, 1):
            places = _vector_operands(node, (index,), constants, count)
            others = _constants_of_operand(node, 1 - index, constants, count) if places else None
            if places and others:
                return [*places, *others]
        return None
    return _constants_of_product(node, constants, count)


def _constants_of_product(node: ir.Node, constants: Constants, count: int) -> list[Constant] | None:
    """Return the weight and the bias of a MatMul or Gemm, None for another node.

    The weight must be read by this node alone, and a bias must be a vector of constants.
    """
    if node.op_type not in ("MatMul", "Gemm"):
        return None
    weight = weight_of(node, constants)
    if not isinstance(weight, Weight) or len(list(weight.value.uses())) != 1:
        return None
    array = operand_array(weight, constants)
    if array.shape[weight.axis] != count:
        return None
    if node.op_type == "MatMul" or optional_input(node, 2) is None:
        return [Constant(node, 1, weight.axis)]
    bias = _vector_operands(node, (2,), constants, count)
    return bias and [*bias, Constant(node, 1, weight.axis)]


def _vector_operands(
    node: ir.Node, indices: Sequence[int], constants: Constants, count: int
) -> list[Constant] | None:
    """Return the operands at ``indices`` that ``node`` has, if each is ``count`` constants.

    None if one is another value, or none is there.
    """
    found = []
    for index in indices:
        if optional_input(node, index) is None:
            continue
        array = _array(node, index, constants)
        if array is None or array.ndim < 1 or array.shape[-1] != count or array.size != count:
            return None
        found.append(Constant(node, index, array.ndim - 1))
    return found or None


def _constants_of_operand(
    node: ir.Node, index: int, constants: Constants, count: int
) -> list[Constant] | None:
    """Return the constants to divide so that the operand ``index`` is divided, None without.

    Only ``node`` may read the operand, and once.
    """
    value = node.inputs[index]
    if value is None or len(list(value.uses())) != 1 or value.is_graph_output():
        return None
    producer = value.producer()
    if producer is None or producer.domain or producer.graph is not node.graph:
        return None
    return _constants_of_result(producer, constants, count)
