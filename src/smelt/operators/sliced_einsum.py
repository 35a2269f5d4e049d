"""A contraction in slices as loops: ONNX's Loop around ``smelt.Einsum``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.contraction import Equation
from smelt.operators.contraction_slices import without_labels
from smelt.operators.dot_general import reduced
from smelt.operators.semiring import Semiring

SUMS = ("Add", "Max", "Min", "Or", "And")
"""Operators that sum two elements and have the same name in ONNX."""


def build_loop(
    model: ir.Model,
    operands: Sequence[ir.Value],
    equation: Equation,
    sliced: Mapping[str, int],
    semiring: Semiring,
    attributes: Mapping[str, Any],
    out: ir.Shape,
) -> ir.Value:
    """Append the contraction of ``operands`` to ``model``, and return its result.

    ``sliced`` has the labels that loops walk, with their sizes: one loop adds up the slices of
    summed labels; a loop around it stacks those of the result's labels. ``attributes`` are those of
    the Einsum of a slice, ``out`` is the shape of the result.
    """
    loops = _Loops(model, ShapeInference(model), semiring, attributes)
    b = Builder(model, model.graph, loops.shapes)
    stacked = {label: n for label, n in sliced.items() if label in equation.out}
    summed = {label: n for label, n in sliced.items() if label not in equation.out}
    if not stacked:
        return loops.sum(b, operands, equation, summed, out)
    inner = without_labels(equation, tuple(stacked))
    sizes = dict(zip(equation.out, out, strict=False))
    parts = out[len(equation.out) :]
    inner_out = ir.Shape([*(sizes[label] for label in inner.out), *parts])
    slice_ = _input("part", ir.DataType.INT64, ir.Shape([]))
    goes_on = _input("goes_on", ir.DataType.BOOL, ir.Shape([]))
    graph = ir.Graph([slice_, goes_on], [], nodes=[], name="parts")
    inside = Builder(model, graph, loops.shapes)
    outer = _sliced(inside, operands, equation, slice_, stacked)
    part = loops.sum(inside, outer, inner, summed, inner_out)
    graph.outputs.extend([inside.op("Identity", goes_on), part])
    trips = b.constant(np.asarray(prod(stacked.values()), np.int64), "parts")
    # A Loop has two inputs or more, so this one has a condition.
    rows = b.op("Loop", trips, b.constant(np.asarray(True), "go_on"), body=graph)
    order = (*reversed(stacked), *inner.out)  # the index of the first label changes fastest
    dims = [*(sizes[label] for label in order), *parts]
    rows = b.op("Reshape", rows, b.const_i64([_number(dim) for dim in dims]))
    perm = [*(order.index(label) for label in equation.out), *range(len(order), len(dims))]
    return b.op("Transpose", rows, perm=perm)


@dataclass(frozen=True)
class _Loops:
    """Builds sums of slices; ``attributes`` are those of the Einsum of a slice."""

    model: ir.Model
    shapes: ShapeInference
    semiring: Semiring
    attributes: Mapping[str, Any]

    def sum(
        self,
        b: Builder,
        operands: Sequence[ir.Value],
        equation: Equation,
        summed: Mapping[str, int],
        out: ir.Shape,
    ) -> ir.Value:
        """Build the contraction of ``operands``, as a loop over slices of ``summed`` if any."""
        if not summed:
            return b.op("Einsum", *operands, domain="smelt", **self.attributes)
        dtype = operands[0].dtype
        assert dtype is not None
        zero = b.constant(self.semiring.neutral_in(dtype.numpy()), "zero")
        first = b.op("Expand", zero, b.const_i64([_number(dim) for dim in out]))
        slice_ = _input("slice", ir.DataType.INT64, ir.Shape([]))
        goes_on = _input("goes_on", ir.DataType.BOOL, ir.Shape([]))
        before = _input("sum", dtype, out)
        graph = ir.Graph([slice_, goes_on, before], [], nodes=[], name="slices")
        inside = Builder(self.model, graph, self.shapes)
        parts = _sliced(inside, operands, equation, slice_, summed)
        term = inside.op("Einsum", *parts, domain="smelt", **self.attributes)
        after = sum_of(inside, before, term, self.semiring)
        graph.outputs.extend([inside.op("Identity", goes_on), after])
        trips = b.constant(np.asarray(prod(summed.values()), np.int64), "slices")
        return b.op("Loop", trips, None, first, body=graph)


def _number(dim: object) -> int:
    """Return a size; the sizes of sliced contractions are known."""
    assert isinstance(dim, int)
    return dim


def _sliced(
    b: Builder,
    operands: Sequence[ir.Value],
    equation: Equation,
    number: ir.Value,
    sliced: Mapping[str, int],
) -> list[ir.Value]:
    """Build the parts of ``operands`` that slice ``number`` of the labels ``sliced`` reads.

    The index of a label is ``number / (product of the sizes before it) % size``.
    """
    places, step = {}, 1
    for label, size in sliced.items():
        times, around = (b.constant(np.asarray(n, np.int64), f"{label}") for n in (step, size))
        places[label] = b.op("Mod", b.op("Div", number, times), around)
        step *= size
    return [
        _slice(b, value, term, places) for value, term in zip(operands, equation.terms, strict=True)
    ]


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
