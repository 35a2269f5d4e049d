"""Run one data-dependent node as a part of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import onnx_ir as ir

from smelt.ir import constants
from smelt.ir.partition import is_constant_node
from smelt.targets.host.any_sizes.control_flow import DynamicIf, DynamicLoop, DynamicScan
from smelt.targets.host.any_sizes.data_dependent import DATA_DEPENDENT
from smelt.targets.host.any_sizes.decided import DECIDING
from smelt.targets.host.any_sizes.plan_cache import PlanCache
from smelt.targets.host.any_sizes.planning import Runner, bound, fix_values
from smelt.targets.host.kernels.kernel import Array

if TYPE_CHECKING:
    from smelt.targets.host.any_sizes.model import Planner

MOST_DECIDING_ELEMENTS = 1 << 10
"""The most elements of an operand that becomes a constant; a larger one does not decide sizes."""


class Operands:
    """Finds the operands of a model's only node among the model's inputs and constants."""

    def __init__(self, model: ir.Model, node: ir.Node) -> None:
        """Note where each operand of ``node`` comes from: an input of ``model``, or a constant."""
        positions = {value: i for i, value in enumerate(model.graph.inputs)}
        self.places = [None if value is None else positions.get(value) for value in node.inputs]
        tensors = [
            None if input_value is None else constants.tensor_of(input_value)
            for input_value in node.inputs
        ]
        self._fixed = [None if tensor is None else np.asarray(tensor.numpy()) for tensor in tensors]

    def __call__(self, arrays: Sequence[Array]) -> list[Array | None]:
        """Return the operands of the node, None for an absent one; ``arrays`` are the inputs of the
        model.
        """
        return [
            fixed if position is None else arrays[position]
            for position, fixed in zip(self.places, self._fixed, strict=True)
        ]


def runner_of_node(model: ir.Model, planner: Planner) -> Runner:
    """Return a runner of ``model``, which has one node besides constants."""
    (node,) = (each for each in model.graph if not is_constant_node(each))
    operands = Operands(model, node)
    if not node.domain and node.op_type == "If":
        return DynamicIf(model, node, operands, planner)
    if not node.domain and node.op_type == "Loop":
        return DynamicLoop(model, node, operands, planner)
    if not node.domain and node.op_type == "Scan":
        return DynamicScan(model, node, operands, planner)
    if not node.domain and node.op_type in DATA_DEPENDENT:
        return SizeComputingNode(model, node, operands)
    return NodeFixedByValues(model, node, operands, planner)


class SizeComputingNode:
    """Runs a node that computes the sizes of its results."""

    def __init__(self, model: ir.Model, node: ir.Node, operands: Operands) -> None:
        """Note which results of ``node`` the outputs of ``model`` are."""
        self._node, self._operands = node, operands
        positions = {value: i for i, value in enumerate(node.outputs)}
        self._positions = [positions[value] for value in model.graph.outputs]

    def __call__(self, *arrays: Array) -> Sequence[Array]:
        """Run the reference of the operator, whose result sizes depend on data."""
        results = DATA_DEPENDENT[self._node.op_type](self._node, self._operands(arrays))
        return [np.asarray(results[i], order="C") for i in self._positions]


class NodeFixedByValues:
    """Runs a node that becomes static once the inputs that decide its sizes are constants."""

    def __init__(
        self, model: ir.Model, node: ir.Node, operands: Operands, planner: Planner
    ) -> None:
        """Find the inputs of ``model`` whose values decide the result sizes of ``node``."""
        self._model, self._planner, self._op = model, planner, node.op_type
        deciding = DECIDING.get(node.op_type, ()) if not node.domain else ()
        deciding_positions = (operands.places[i] for i in deciding if i < len(operands.places))
        self._deciding = sorted(
            {position for position in deciding_positions if position is not None}
        )
        self._plans = PlanCache(planner.planning)

    def __call__(self, *arrays: Array) -> Sequence[Array]:
        """Run the node, with small deciding inputs as constants of a cached plan."""
        values = {i: arrays[i] for i in self._deciding if arrays[i].size <= MOST_DECIDING_ELEMENTS}
        shapes = tuple(array.shape for array in arrays)
        key = (shapes, *(array.tobytes() for array in values.values()))

        def make() -> Runner:
            """Return a runner for these shapes and deciding values."""
            model = bound(self._model, arrays)
            fix_values(model, values)
            return self._planner.runner_of_call(model, self._op)

        run = self._plans.of(key, make)
        return run(*(array for i, array in enumerate(arrays) if i not in values))
