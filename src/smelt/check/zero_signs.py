"""Find the outputs that depend on the sign of a zero, such as exp(1/x) at x = 0.

Passes declared ``exact_but_zero_sign`` may change the sign of a zero, and so every result that is
computed from that sign. The source runs twice more, with all zeros of its nodes positive and with
all negative; an element that changes is undetermined.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.check.compare import Slack
from smelt.errors import SmeltError
from smelt.ir import scope
from smelt.ir.floats import is_float
from smelt.ir.shapes.inference import ShapeInference
from smelt.runtime.interface import Value
from smelt.runtime.runner import RunnerName, open_runner

Run = tuple[Sequence[Value], Sequence[Value]]
"""Inputs, and the outputs of the unchanged model on them."""


def undetermined(model: ir.Model, runner: RunnerName, runs: Sequence[Run]) -> list[Slack]:
    """Return, for each run and output, infinity where an element depends on the sign of a zero,
    and 0 elsewhere.

    A model that cannot run with other zeros counts as determined everywhere.
    """
    slack = [[_zeros_like(output) for output in outputs] for _, outputs in runs]
    for negative in (False, True):
        other = model.clone()
        give_zeros_one_sign(other, negative=negative)
        try:
            run_other = open_runner(other, runner, consume=True)
            for (inputs, outputs), open_elements in zip(runs, slack, strict=True):
                for triple in zip(outputs, run_other(*inputs), open_elements, strict=True):
                    _exclude_differences(*triple)
        except SmeltError:
            continue
    return [list(open_elements) for open_elements in slack]


def _exclude_differences(before: Value, after: Value, slack: np.ndarray | None) -> None:
    """Set ``slack`` to infinity where the two results differ."""
    if not isinstance(before, np.ndarray) or not isinstance(after, np.ndarray):
        return
    if slack is not None and slack.shape == after.shape:
        slack[_differs(before, after)] = np.inf


def give_zeros_one_sign(model: ir.Model, *, negative: bool) -> None:
    """Insert exact nodes so that all consumers of a float see its zeros as +0, or as -0."""
    ShapeInference(model).infer_model()
    for graph in scope.graphs(model):
        for node in list(graph):
            for value in node.outputs:
                if isinstance(value.type, ir.TensorType) and _is_float(value.dtype):
                    _normalize(graph, node, value, negative)


def _normalize(graph: ir.Graph, node: ir.Node, value: ir.Value, negative: bool) -> None:
    """Insert x + 0, which has no -0, or -(-x + 0), which has no +0, between ``value`` and its
    readers.
    """
    assert value.dtype is not None
    readers = list(value.uses())
    zero = ir.Tensor(np.zeros((), value.dtype.numpy()))
    constant = ir.Node("", "Constant", [], [ir.AttrTensor("value", zero)])
    steps = [constant]
    current = value
    operators = ("Neg", "Add", "Neg") if negative else ("Add",)
    for op_type in operators:
        operands = [current, constant.outputs[0]] if op_type == "Add" else [current]
        steps.append(ir.Node("", op_type, operands))
        current = steps[-1].outputs[0]
        current.type, current.shape = value.type, value.shape
    graph.insert_after(node, steps)
    for number, step in enumerate(steps):
        step.outputs[0].name = f"{value.name}.zero.{number}"
    for use in readers:
        use.node.replace_input_with(use.idx, current)
    for index, output in enumerate(graph.outputs):
        if output is value:
            graph.outputs[index] = current
            current.name, value.name = value.name, current.name


def _is_float(dtype: ir.DataType | None) -> bool:
    """True for float16, float32 and float64, the types whose zeros get the other sign."""
    return dtype in (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE)


def _zeros_like(output: Value) -> np.ndarray | None:
    """Return zeros in the shape of ``output``; None if it is not an array."""
    return np.zeros(output.shape) if isinstance(output, np.ndarray) else None


def _differs(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """Return a mask of the elements that differ by more than the sign of zero."""
    same = np.asarray(before == after)
    if is_float(before.dtype):
        same |= np.isnan(before.astype(np.float64)) & np.isnan(after.astype(np.float64))
    return ~same
