"""A contraction in slices as a loop: ONNX's Loop around ``smelt.Einsum``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.contraction import Equation
from smelt.operators.dot_general import reduced
from smelt.operators.semiring import Semiring

SUMS = ("Add", "Max", "Min", "Or", "And")
"""Operators that sum two elements and have the same name in ONNX."""


def build_loop(
    model: ir.Model,
    equation: Equation,
    sliced: Mapping[str, int],
    semiring: Semiring,
    attributes: Mapping[str, Any],
    out: ir.Shape,
) -> ir.Value:
    """Append the contraction of the inputs of ``model`` to it, and return its result.

    ``sliced`` has the labels that the loop walks, with their sizes. ``attributes`` are those of the
    Einsum of a slice, ``out`` is the shape of the result.
    """
    graph, shapes = model.graph, ShapeInference(model)
    b = Builder(model, graph, shapes)
    dtype = graph.inputs[0].dtype
    assert dtype is not None
    zero = b.constant(semiring.neutral_in(dtype.numpy()), "zero")
    first = b.op("Expand", zero, b.const_i64([_number(dim) for dim in out]))
    body = _body(model, shapes, equation, sliced, semiring, attributes, (dtype, out))
    count = prod(sliced.values())
    trips = b.constant(np.asarray(count, np.int64), "slices")
    return b.op("Loop", trips, None, first, body=body)


def _number(dim: object) -> int:
    """Return a size; the sizes of sliced contractions are known."""
    assert isinstance(dim, int)
    return dim


def _body(
    model: ir.Model,
    shapes: ShapeInference,
    equation: Equation,
    sliced: Mapping[str, int],
    semiring: Semiring,
    attributes: Mapping[str, Any],
    result: tuple[ir.DataType, ir.Shape],
) -> ir.Graph:
    """Build the loop body: it adds the einsum of one slice of the operands to the sum so far."""
    dtype, out = result
    slice_ = _input("slice", ir.DataType.INT64, ir.Shape([]))
    goes_on = _input("goes_on", ir.DataType.BOOL, ir.Shape([]))
    before = _input("sum", dtype, out)
    graph = ir.Graph([slice_, goes_on, before], [], nodes=[], name="slices")
    b = Builder(model, graph, shapes)
    places, step = {}, 1
    for label, size in sliced.items():
        times, around = (b.constant(np.asarray(n, np.int64), f"{label}") for n in (step, size))
        places[label] = b.op("Mod", b.op("Div", slice_, times), around)
        step *= size
    operands = [
        _slice(b, value, term, places)
        for value, term in zip(model.graph.inputs, equation.terms, strict=True)
    ]
    term = b.op("Einsum", *operands, domain="smelt", **attributes)
    after = sum_of(b, before, term, semiring)
    graph.outputs.extend([b.op("Identity", goes_on), after])
    return graph


def _input(name: str, dtype: ir.DataType, shape: ir.Shape) -> ir.Value:
    """Return a new input of the loop body."""
    return ir.Value(name=name, type=ir.TensorType(dtype), shape=shape)


def _slice(
    b: Builder, value: ir.Value, term: Sequence[str], places: Mapping[str, ir.Value]
) -> ir.Value:
    """Build the part of an operand that one slice reads.

    Several dims are indexed at once, by positions in the flat operand. Indexing one after the other
    would hold more than a slice in between.
    """
    axes = [axis for axis, label in enumerate(term) if label in places]
    if not axes:
        return value
    if len(axes) == 1:
        return b.op("Gather", value, places[term[axes[0]]], axis=axes[0])
    assert value.shape is not None
    sizes = [_number(dim) for dim in value.shape]
    parts = sizes[len(term) :]  # the parts of a complex number stay together
    strides = [prod(sizes[axis + 1 : len(term)]) for axis in range(len(term))]
    other_axes = [axis for axis in range(len(term)) if axis not in axes]
    grid = np.zeros([sizes[axis] for axis in other_axes], np.int64)
    for dim, axis in enumerate(other_axes):
        steps = np.arange(sizes[axis]) * strides[axis]
        grid += steps.reshape([-1 if position == dim else 1 for position in range(len(other_axes))])
    at = b.constant(grid, "places")
    for axis in axes:
        at = b.op("Add", at, b.op("Mul", places[term[axis]], _stride(b, strides[axis])))
    flat = b.op("Reshape", value, b.const_i64([prod(sizes[: len(term)]), *parts]))
    return b.op("Gather", flat, at, axis=0)


def _stride(b: Builder, stride: int) -> ir.Value:
    """Build the constant ``stride``: how far apart in memory neighbors along a dim are."""
    return b.constant(np.asarray(stride, np.int64), "stride")


def sum_of(b: Builder, x: ir.Value, y: ir.Value, semiring: Semiring) -> ir.Value:
    """Build the sum, over ``semiring``, of two values of equal shape, element by element."""
    if semiring.plus in SUMS:
        return b.op(semiring.plus, x, y)
    rows = [b.op("Unsqueeze", value, b.const_i64([0])) for value in (x, y)]
    return reduced(b, b.op("Concat", *rows, axis=0), (0,), semiring)
