"""Read the sum before the activation of a recurrent gate: products with constants, and biases.

The sum is traced column by column through Split and Slice, so that gates computed together can be
compared and assembled one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.constants import Constants
from smelt.ir.slices import cuts_of
from smelt.ir.walk import producer_of
from smelt.passes.layout.merge_consecutive_transposes import permutation

MOST = 96
"""Limit of nodes read for one cell; an LSTM with one product for each gate has 40."""


@dataclass(frozen=True)
class Weight:
    """The part of a constant matrix that one gate multiplies one operand by.

    It has rows ``out`` and columns ``into`` (begin and end) of ``[out, in]``, which may be stored
    transposed.
    """

    value: ir.Value
    transposed: bool
    out: tuple[int, int]
    into: tuple[int, int]

    def array(self, constants: Constants) -> np.ndarray:
        """Return the numbers, ``[out, in]``."""
        array = constants.get(self.value, limit=None)
        assert array is not None
        array = array.T if self.transposed else array
        return array[slice(*self.out), slice(*self.into)]


@dataclass(frozen=True)
class Bias:
    """Elements ``span`` of a constant row."""

    value: ir.Value
    span: tuple[int, int]

    def array(self, constants: Constants) -> np.ndarray:
        """Return the numbers, of rank 1."""
        array = constants.get(self.value, limit=None)
        assert array is not None
        return array.reshape(-1)[slice(*self.span)]


@dataclass
class Gate:
    """``sum(weights[x] @ x) + sum(biases)`` over the operands ``x``."""

    weights: dict[ir.Value, Weight]
    biases: tuple[Bias, ...]

    def of(self, operand: ir.Value) -> Weight | None:
        """Return the weight of one operand, None if the gate does not read it."""
        return self.weights.get(operand)


class GateReader:
    """Reads gates of one graph; ``nodes`` collects the nodes read since ``start``."""

    def __init__(self, graph: ir.Graph, constants: Constants, version: int) -> None:
        """Begin to read a gate in ``graph``; ``nodes`` are those passed, ``left`` how many more may
        be.
        """
        self.graph = graph
        self.constants = constants
        self.version = version
        self.nodes: dict[ir.Node, None] = {}
        self.left = MOST

    def node(self, value: ir.Value | None, *op_types: str) -> ir.Node | None:
        """Return the producer of ``value`` if it is in this graph and one of ``op_types``; collect
        it.

        Returns None beyond the limit of nodes for one cell.
        """
        node = producer_of(value, *op_types)
        if node is None or node.graph is not self.graph or self.left <= 0:
            return None
        self.left -= 1
        self.nodes.setdefault(node)
        return node

    def start(self) -> None:
        """Begin to read another cell: empty ``nodes`` and reset the limit."""
        self.nodes, self.left = {}, MOST

    def gate(self, value: ir.Value | None) -> Gate | None:
        """Return the sum of products and biases that ``value`` is, over all its columns, else
        None."""
        width = _width(value)
        return None if value is None or width is None else self._sum(value, (0, width))

    def _sum(self, value: ir.Value, columns: tuple[int, int]) -> Gate | None:
        """Return the Gate that ``columns`` (first, end) of ``value`` compute, else None."""
        bias = self._bias(value, columns)
        if bias is not None:
            return Gate({}, (bias,))
        node = self.node(value, "Add", "Gemm", "MatMul", "Split", "Slice")
        if node is None or None in node.inputs[:2]:
            return None
        if node.op_type == "Add":
            left, right = node.inputs
            assert left is not None
            assert right is not None
            left_gate = self._sum(left, columns)
            right_gate = self._sum(right, columns) if left_gate is not None else None
            return (
                _sum_of_gates(left_gate, right_gate)
                if left_gate is not None and right_gate is not None
                else None
            )
        if node.op_type in ("Split", "Slice"):
            source, start = node.inputs[0], self._start(node, value)
            if start is None or source is None:
                return None
            return self._sum(source, (columns[0] + start, columns[1] + start))
        return self._product(node, columns)

    def _bias(self, value: ir.Value, span: tuple[int, int]) -> Bias | None:
        """Return columns ``span`` of ``value`` if it is a constant row, else None."""
        array = self.constants.get(value, limit=None)
        if array is None or array.shape[-1:] != (array.size,) or array.size < span[1]:
            return None
        return Bias(value, span)

    def _start(self, node: ir.Node, value: ir.Value) -> int | None:
        """Return the first column that a Split or Slice of the last axis takes; None for any other
        cut."""
        source = node.inputs[0]
        width, rank = _width(source), len(value.shape or ())
        if width is None:
            return None
        if node.op_type == "Split":
            axis = opset.attribute(node, "axis", self.version)
            widths = [_width(output) for output in node.outputs]
            if axis % rank != rank - 1 or None in widths:
                return None
            return sum(
                each_width for each_width in widths[: value.index()] if each_width is not None
            )
        cut = cuts_of(node, self.constants)
        if cut is None or len(cut) != 1:
            return None
        ((axis, (start, _, step)),) = cut.items()
        is_inside = step == 1 and axis % rank == rank - 1 and -width <= start < width
        return start % width if is_inside else None

    def _product(self, node: ir.Node, span: tuple[int, int]) -> Gate | None:
        """Return the Gate of columns ``span`` of a Gemm or MatMul with a constant matrix, else
        None."""
        left, right, *bias_operands = node.inputs
        if left is None or right is None:
            return None
        biases: tuple[Bias, ...] = ()
        if node.op_type == "Gemm":
            alpha, beta, trans_a, trans_b = (
                opset.attribute(node, name, self.version)
                for name in ("alpha", "beta", "transA", "transB")
            )
            if trans_a or alpha != 1:
                return None
            if bias_operands and bias_operands[0] is not None:
                bias = self._bias(bias_operands[0], span)
                if bias is None or beta != 1:
                    return None
                biases = (bias,)
            return self._weighted(left, right, not trans_b, span, biases)
        if self._matrix(right) is not None:
            return self._weighted(left, right, transposed=True, span=span, biases=())
        is_vector = right.shape is not None and len(right.shape) == 1
        return (
            self._weighted(right, left, transposed=False, span=span, biases=())
            if is_vector
            else None
        )

    def _matrix(self, value: ir.Value) -> tuple[ir.Value, bool] | None:
        """Return the constant matrix behind Transposes, and whether they transpose it; None if it
        is not constant or not of rank 2.
        """
        transposed, node = False, producer_of(value, "Transpose")
        while node is not None and node.inputs[0] is not None:
            if permutation(node) != (1, 0):
                return None
            value, transposed = node.inputs[0], not transposed
            node = producer_of(value, "Transpose")
        array = self.constants.get(value, limit=None)
        return (value, transposed) if array is not None and array.ndim == 2 else None

    def _weighted(
        self,
        operand: ir.Value,
        weight: ir.Value,
        transposed: bool,
        span: tuple[int, int],
        biases: tuple[Bias, ...],
    ) -> Gate | None:
        """Return the Gate that multiplies ``operand`` by ``weight``, with one Weight for each part
        of a Concat.

        ``transposed``: the product multiplies by the matrix [in, out] instead of [out, in]. None if
        the weight is not a constant matrix, if a width is unknown, or if the Concat joins a value
        twice.
        """
        matrix = self._matrix(weight)
        if matrix is None or operand.shape is None or len(operand.shape) > 2:
            return None
        value, stored_transposed = matrix
        is_transposed, start = transposed != stored_transposed, 0
        weights: dict[ir.Value, Weight] = {}
        for part in self._joined_operands(operand):
            width = _width(part)
            if width is None or part in weights:
                return None
            weights[part] = Weight(value, is_transposed, span, (start, start + width))
            start += width
        return Gate(weights, biases)

    def _joined_operands(self, operand: ir.Value) -> list[ir.Value]:
        """Return the operands that a Concat along the last axis joins, else ``operand`` alone."""
        joined = producer_of(operand, "Concat")
        rank = len(operand.shape or ())
        if joined is None or joined.graph is not self.graph or None in joined.inputs:
            return [operand]
        if opset.attribute(joined, "axis", self.version) % rank != rank - 1:
            return [operand]
        self.nodes.setdefault(joined)
        return [value for value in joined.inputs if value is not None]


def _sum_of_gates(a: Gate, b: Gate) -> Gate | None:
    """Return the sum of two Gates; None if both multiply the same operand."""
    if a.weights.keys() & b.weights.keys():
        return None
    return Gate({**a.weights, **b.weights}, (*a.biases, *b.biases))


def _width(value: ir.Value | None) -> int | None:
    """Return the number of columns, None if it is unknown."""
    if value is None or value.shape is None or not len(value.shape):
        return None
    last = value.shape[-1]
    return last if isinstance(last, int) else None
