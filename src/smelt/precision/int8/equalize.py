"""Cross-layer equalization: channels between two convolutions get weights of like magnitude.

    before   Conv(x, w, b) ─> Relu ─> Conv(r, v)
    after    Conv(x, w / s, b / s) ─> Relu ─> Conv(r, s * v)

A channel with the largest magnitude p in ``w`` and q in ``v`` gets ``s = sqrt(p / q)``, rounded to
a power of 2, so that floats compute exactly the same (but for numbers below 1.2e-38). Both
magnitudes are then about sqrt(p * q). A scale for all channels of a weight or of an activation
leaves small channels fewer bits than large ones; after the change, channels are more alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.node_inputs import optional_input
from smelt.ir.same_shape import static_shape
from smelt.ir.shapes.inference import ShapeInference
from smelt.precision.int8.candidates import Weight, weight_of

HOMOGENEOUS = frozenset(
    {"AveragePool", "GlobalAveragePool", "GlobalMaxPool", "LeakyRelu", "MaxPool", "Relu"}
)
"""Operators with f(s * x) = s * f(x) in each channel, for a power of 2."""

ROUNDS = 4
"""A channel of a chain of convolutions belongs to two pairs, so pairs are equalized repeatedly."""

MOST = 10
"""The largest power of 2 of one step."""


@dataclass(frozen=True)
class Pair:
    """Two convolutions; ``second`` alone reads ``first``, through ``HOMOGENEOUS`` or directly."""

    first: ir.Node
    second: ir.Node


def equalize(model: ir.Model) -> int:
    """Equalize all pairs of convolutions of the main graph in place; return how many changed."""
    constants = Constants()
    pairs = list(_pairs(model.graph, constants))
    arrays: dict[tuple[ir.Node, int], np.ndarray] = {}
    for pair in pairs:
        for node, index in ((pair.first, 1), (pair.first, 2), (pair.second, 1)):
            array = constants.get(optional_input(node, index), None)
            if array is not None:
                arrays.setdefault((node, index), array)
    changed: set[Pair] = set()
    for _ in range(ROUNDS):
        changed |= {pair for pair in pairs if _scale(pair, arrays)}
    b = Builder(model, model.graph, ShapeInference(model), before=None)
    for (node, index), array in arrays.items():
        old = node.inputs[index]
        assert old is not None
        if array is not constants.get(old, None):
            name = b.free_name(f"{old.name}_equalized")
            node.replace_input_with(index, b.constant(array, name=name))
    return len(changed)


def _pairs(graph: ir.Graph, constants: Constants) -> Iterator[Pair]:
    """Yield the pairs whose weights are constants that no other node reads."""
    for node in graph:
        if not _is_scalable(node, constants):
            continue
        bias = optional_input(node, 2)
        if bias is not None and not _is_own(bias, constants):
            continue
        reader = _only_convolution(node.outputs[0], graph)
        if reader is None or not _is_scalable(reader, constants):
            continue
        group, per_group = reader.attributes.get_int("group", 1), _shape(reader)[1]
        if group * per_group == _shape(node)[0] and 1 in (group, per_group):
            yield Pair(node, reader)


def _is_scalable(node: ir.Node, constants: Constants) -> bool:
    """True for a convolution with a constant float32 weight of its own."""
    if node.op_type != "Conv" or node.domain:
        return False
    weight = weight_of(node, constants)
    return (
        isinstance(weight, Weight)
        and weight.value is node.inputs[1]
        and _is_own(weight.value, constants)
    )


def _is_own(value: ir.Value, constants: Constants) -> bool:
    """True for a finite float32 constant with one reader."""
    array = constants.get(value, None)
    if array is None or array.dtype != np.float32 or value.is_graph_output():
        return False
    return len(list(value.uses())) == 1 and bool(np.isfinite(array).all())


def _only_convolution(value: ir.Value, graph: ir.Graph) -> ir.Node | None:
    """Return the convolution that alone reads ``value``, through ``HOMOGENEOUS`` or directly."""
    while not value.is_graph_output():
        uses = list(value.uses())
        if len(uses) != 1 or uses[0].idx != 0 or uses[0].node.domain:
            return None
        node = uses[0].node
        if node.graph is not graph:
            return None
        if node.op_type == "Conv":
            return node
        if node.op_type not in HOMOGENEOUS or any(each.uses() for each in node.outputs[1:]):
            return None
        value = node.outputs[0]
    return None


def _shape(node: ir.Node) -> tuple[int, ...]:
    """Return the shape of the weight of a convolution, which is a constant."""
    weight = node.inputs[1]
    shape = static_shape(weight) if weight is not None else None
    assert shape is not None
    return shape


def _exponents(pair: Pair, arrays: dict[tuple[ir.Node, int], np.ndarray]) -> np.ndarray:
    """Return the power of 2 by which each channel is divided in front and multiplied behind.

    It is 0 for a channel whose bias would become infinite.
    """
    first, second = arrays[pair.first, 1], arrays[pair.second, 1]
    channels = len(first)
    front = np.abs(first).reshape(channels, -1).max(axis=1)
    if second.shape[1] == 1:
        behind = np.abs(second).reshape(channels, -1).max(axis=1)
    else:
        behind = np.abs(np.moveaxis(second, 1, 0)).reshape(channels, -1).max(axis=1)
    used = (front > 0) & (behind > 0)
    ratio = np.divide(front, behind, where=used, out=np.ones(channels, np.float32))
    exponents = np.asarray(np.clip(np.rint(np.log2(ratio) / 2), -MOST, MOST), np.int64)
    bias = arrays.get((pair.first, 2), np.zeros(channels, np.float32))
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(np.ldexp(bias, -exponents).astype(np.float32))
    return np.where(is_finite, exponents, 0)


def _scale(pair: Pair, arrays: dict[tuple[ir.Node, int], np.ndarray]) -> bool:
    """Scale the arrays of a pair; False if all its exponents are 0."""
    exponents = _exponents(pair, arrays)
    if not exponents.any():
        return False
    first, second = arrays[pair.first, 1], arrays[pair.second, 1]
    ones = [1] * (first.ndim - 1)
    arrays[pair.first, 1] = np.ldexp(first, -exponents.reshape(-1, *ones)).astype(np.float32)
    if (pair.first, 2) in arrays:
        bias = arrays[pair.first, 2]
        arrays[pair.first, 2] = np.ldexp(bias, -exponents).astype(np.float32)
    behind = [1] * second.ndim
    if second.shape[1] == 1:
        exponents = np.repeat(exponents, len(second) // len(exponents))
        behind[0] = -1
    else:
        behind[1] = -1
    arrays[pair.second, 1] = np.ldexp(second, exponents.reshape(behind)).astype(np.float32)
    return True
