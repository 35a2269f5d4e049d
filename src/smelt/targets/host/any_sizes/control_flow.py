"""If, Loop and Scan as in ONNX, with bodies that are models of any sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from smelt.errors import UsageError
from smelt.ir.partition import body_of
from smelt.targets.host.any_sizes.planning import Runner, forget_sizes, unused_names
from smelt.targets.host.kernels.kernel import Array

if TYPE_CHECKING:
    from smelt.targets.host.any_sizes.model import Planner
    from smelt.targets.host.any_sizes.node import Operands

FIRST_WITHOUT_BATCH = 9
"""The first opset whose Scan has no batch axis."""


class Body:
    """Runs a graph that is an attribute of a node of ``model``, such as the body of a Loop."""

    def __init__(
        self, model: ir.Model, graph: ir.Graph, planner: Planner, shapes: Sequence[ir.Shape | None]
    ) -> None:
        """Extract ``graph`` as a model of its own, which is planned on its first call.

        ``shapes`` are the shapes of its first inputs in every iteration; None for an unknown rank.
        Each dim that is not a number becomes a new symbol.
        """
        positions = {value: i for i, value in enumerate(model.graph.inputs)}
        part, captured = body_of(model, graph)
        self._captured = [positions[value] for value in captured]
        forget_sizes(part)
        for value, _ in zip(part.graph.inputs, shapes, strict=False):
            value.shape = None
        names = unused_names(part)
        for value, shape in zip(part.graph.inputs, shapes, strict=False):
            if shape is not None:
                value.shape = ir.Shape(
                    [dim if isinstance(dim, int) else next(names) for dim in shape]
                )
        self._run: Runner | None = None
        self._part, self._planner = part, planner

    def __call__(self, arguments: Sequence[Array], around: Sequence[Array]) -> Sequence[Array]:
        """Run the body on ``arguments`` and on the values that it captures.

        ``around`` has the inputs of the model that contains the node.
        """
        if self._run is None:  # plan on first use: a branch may never be taken
            with self._planner.planning:
                self._run = self._run or self._planner.runner_of_part(self._part)
        return self._run(*arguments, *(around[position] for position in self._captured))


def _needed_outputs(model: ir.Model, node: ir.Node) -> list[int]:
    """Return the indices of the outputs of ``node`` that the model returns."""
    positions = {value: i for i, value in enumerate(node.outputs)}
    return [positions[value] for value in model.graph.outputs]


class DynamicIf:
    """An If, whose results have the sizes of the branch that is taken."""

    def __init__(
        self, model: ir.Model, node: ir.Node, operands: Operands, planner: Planner
    ) -> None:
        """Plan both branches, each a part with the inputs that it captures."""
        self._operands, self._needed_outputs = operands, _needed_outputs(model, node)
        graphs = [node.attributes[f"{name}_branch"].as_graph() for name in ("then", "else")]
        self._then, self._other = (Body(model, graph, planner, ()) for graph in graphs)

    def __call__(self, *arrays: Array) -> Sequence[Array]:
        """Run the branch that the condition selects; return the outputs that are needed."""
        condition = self._operands(arrays)[0]
        is_true = condition is not None and bool(condition.all())
        results = (self._then if is_true else self._other)((), arrays)
        return [results[position] for position in self._needed_outputs]


def _state_shape(before: ir.Value | None, after: ir.Value) -> ir.Shape | None:
    """Return the shape of a state that holds in every iteration; None if its rank is unknown.

    ``before`` is the initial state, ``after`` the state that the node returns. The sizes are known
    only if both have them equal and static.
    """
    shape = before.shape if before is not None else None
    if shape is not None and shape == after.shape and shape.is_static():
        return shape
    if after.shape is None or shape is None or len(shape) != len(after.shape):
        return None
    return ir.Shape([None] * len(shape))


class DynamicLoop:
    """A Loop, whose states may change sizes between iterations."""

    def __init__(
        self, model: ir.Model, node: ir.Node, operands: Operands, planner: Planner
    ) -> None:
        """Extract the body of the Loop ``node``; states that change have unknown sizes."""
        self._operands, self._needed_outputs = operands, _needed_outputs(model, node)
        graph = node.attributes["body"].as_graph()
        self._state_count = len(graph.inputs) - 2
        pairs = zip(node.inputs[2:], node.outputs[: self._state_count], strict=True)
        states = [_state_shape(before, after) for before, after in pairs]
        self._row_shapes = [value.shape for value in node.outputs[self._state_count :]]
        self._row_dtypes = [value.dtype for value in node.outputs[self._state_count :]]
        self._body = Body(model, graph, planner, (ir.Shape([]), ir.Shape([]), *states))

    def __call__(self, *arrays: Array) -> Sequence[Array]:
        """Run the Loop; return the states and stacked scan outputs that the model returns."""
        count, condition, *states = self._operands(arrays)
        limit = None if count is None else int(count.reshape(()))
        goes_on = condition is None or bool(condition.all())
        rows: list[list[Array]] = [[] for _ in self._row_shapes]
        i = 0
        while goes_on and (limit is None or i < limit):
            head = (np.array(i, np.int64), np.array(goes_on))
            last, *results = self._body((*head, *map(_required_state, states)), arrays)
            goes_on, states = bool(last.all()), list(results[: self._state_count])
            for stacked, row in zip(rows, results[self._state_count :], strict=True):
                stacked.append(row)
            i += 1
        ends = [
            *map(_required_state, states),
            *map(_stacked_rows, rows, self._row_shapes, self._row_dtypes),
        ]
        return [ends[position] for position in self._needed_outputs]


def _required_state(array: Array | None) -> Array:
    """Return the initial state ``array``; raises UsageError E671 if it is missing."""
    if array is None:
        raise UsageError(
            "E671",
            "a state of a Loop or Scan is missing",
            why="each state needs a value before the first iteration",
            fix="pass an array for each input of the model",
        )
    return array


def _in_order(array: Array) -> Array:
    """Return ``array`` in C order; ``np.ascontiguousarray`` would give a scalar a dim."""
    return np.asarray(array, order="C")


def _stacked_rows(
    rows: Sequence[Array], shape: ir.Shape | None, dtype: ir.DataType | None
) -> Array:
    """Return ``rows`` stacked: a scan output of a Loop or Scan.

    If no iteration ran, the result is empty, with the sizes of ``shape``, the output's. An unknown
    size is then 0, as in ONNX Runtime.
    """
    if not rows:
        dims = shape.dims[1:] if shape is not None else ()
        sizes = [dim if isinstance(dim, int) else 0 for dim in dims]
        return np.zeros((0, *sizes), (dtype or ir.DataType.FLOAT).numpy())
    if len({row.shape for row in rows}) > 1:
        raise UsageError(
            "E670",
            f"rows of a Loop or Scan have the shapes {sorted({row.shape for row in rows})}",
            why="they are stacked, so all have one shape",
            fix="give data that leads to rows of one shape",
        )
    return np.stack(rows)


class DynamicScan:
    """A Scan: a body over slices, forwards or backwards; before opset 9 also over batches."""

    def __init__(
        self, model: ir.Model, node: ir.Node, operands: Operands, planner: Planner
    ) -> None:
        """Extract the body of the Scan ``node``, and read its directions and axes."""
        self._operands, self._needed_outputs = operands, _needed_outputs(model, node)
        graph = node.attributes["body"].as_graph()
        self._count = node.attributes.get_int("num_scan_inputs", 0)
        self._batched = model.opset_imports.get("", FIRST_WITHOUT_BATCH) < FIRST_WITHOUT_BATCH
        self._state_count = len(graph.inputs) - self._count
        self._node, output_count = node, len(graph.outputs) - self._state_count
        directions = "directions" if self._batched else "scan_input_directions"
        self._back = _numbers(node, directions, self._count)
        self._axes = _numbers(node, "scan_input_axes", self._count)
        self._writes_backwards = _numbers(node, "scan_output_directions", output_count)
        self._output_axes = _numbers(node, "scan_output_axes", output_count)
        self._row_shapes = [value.shape for value in node.outputs[self._state_count :]]
        self._row_dtypes = [value.dtype for value in node.outputs[self._state_count :]]
        states_and_inputs = node.inputs[1:] if self._batched else node.inputs
        pairs = zip(
            states_and_inputs[: self._state_count], node.outputs[: self._state_count], strict=True
        )
        states = [None if self._batched else _state_shape(before, after) for before, after in pairs]
        self._body = Body(model, graph, planner, states)

    def __call__(self, *arrays: Array) -> Sequence[Array]:
        """Run the Scan over one sequence, or over a batch of them (opset 8); return the needed
        outputs.
        """
        operands = self._operands(arrays)
        ends = self._batches(operands, arrays) if self._batched else self._walk(operands, arrays)
        return [ends[position] for position in self._needed_outputs]

    def _walk(self, operands: Sequence[Array | None], around: Sequence[Array]) -> list[Array]:
        """Run the body once for each slice of the scan inputs; return states and scan outputs.

        ``operands`` are the initial states, then the scan inputs.
        """
        states = [_required_state(each) for each in operands[: self._state_count]]
        inputs = [_required_state(each) for each in operands[self._state_count :]]
        pairs = zip(inputs, self._axes, self._back, strict=True)
        lists = [
            np.flip(np.moveaxis(x, axis, 0), 0) if back else np.moveaxis(x, axis, 0)
            for x, axis, back in pairs
        ]
        rows: list[list[Array]] = [[] for _ in self._row_shapes]
        for each in zip(*lists, strict=True):
            results = self._body((*states, *map(_in_order, each)), around)
            states = list(results[: self._state_count])
            for output_rows, row in zip(rows, results[self._state_count :], strict=True):
                output_rows.append(row)
        for output_rows, back in zip(rows, self._writes_backwards, strict=True):
            output_rows[:] = output_rows[::-1] if back else output_rows
        stacked = map(_stacked_rows, rows, self._row_shapes, self._row_dtypes)
        at_output_axes = [
            np.moveaxis(x, 0, axis) for x, axis in zip(stacked, self._output_axes, strict=True)
        ]
        return [*states, *map(_in_order, at_output_axes)]

    def _batches(self, operands: Sequence[Array | None], around: Sequence[Array]) -> list[Array]:
        """Run each sample of a batch by itself (opset 8); rows behind the sample's length are 0."""
        lengths, states_and_inputs = operands[0], [_required_state(each) for each in operands[1:]]
        longest = states_and_inputs[self._state_count].shape[1]
        results_of: list[list[Array]] = []
        for sample in range(states_and_inputs[0].shape[0]):
            length = longest if lengths is None else int(lengths[sample])
            sample_rows = [x[sample] for x in states_and_inputs]
            cut = [
                *sample_rows[: self._state_count],
                *(x[:length] for x in sample_rows[self._state_count :]),
            ]
            ends = self._walk(cut, around)
            for position in range(self._state_count, len(ends)):
                missing = [(0, longest - length), *[(0, 0)] * (ends[position].ndim - 1)]
                ends[position] = np.pad(ends[position], missing)
            results_of.append(ends)
        return [np.stack(each) for each in zip(*results_of, strict=True)]


def _numbers(node: ir.Node, name: str, count: int) -> Sequence[int]:
    """Return the attribute ``name``, which has ``count`` integers; zeros if it is absent."""
    attr = node.attributes.get(name)
    return (0,) * count if attr is None else tuple(attr.as_ints())
