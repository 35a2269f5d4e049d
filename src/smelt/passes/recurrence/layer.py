"""Build the LSTM, GRU or RNN node for the steps of a cell, with weights in ONNX's order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.passes.recurrence.cells import Cell
from smelt.passes.recurrence.gates import Bias
from smelt.passes.recurrence.sequence import Element


@dataclass(frozen=True)
class Steps:
    """Cells in the order of computation, and the element of the sequence that each one reads."""

    cells: tuple[Cell, ...]
    elements: tuple[Element, ...]

    @property
    def stride(self) -> int:
        """1 if the steps run from the first element to the last, -1 if they run backwards."""
        return self.elements[1].index - self.elements[0].index


def operator_of(cell: Cell) -> str:
    """Return the ONNX operator: LSTM, GRU or RNN."""
    return cell.kind if cell.kind in ("LSTM", "GRU") else "RNN"


def layer(constants: Constants, b: Builder, steps: Steps, count: int) -> tuple[ir.Value, ...]:
    """Return the first ``count`` results of the new node.

    They are the states of all steps, the last state, and the last memory.
    """
    first = steps.cells[0]
    assert first.state is not None
    arrays = _weights(constants, first)
    weights = [b.constant(array) for array in arrays]
    has_batch = first.result.shape is not None and len(first.result.shape) == 2
    lead = b.const_i64([0]) if has_batch else b.const_i64([0, 1])
    states = [
        None if is_zero(state, constants) else b.op("Unsqueeze", state, lead)
        for state in (first.state, first.memory)
        if state is not None
    ]
    kind = operator_of(first)
    attributes: dict[str, object] = {"hidden_size": arrays[1].shape[2]}
    if steps.stride < 0:
        attributes["direction"] = "reverse"
    if kind == "GRU":
        attributes["linear_before_reset"] = int(first.before)
    if first.kind == "Relu":
        attributes["activations"] = ["Relu"]
    x = _sequence(b, steps, has_batch)
    operands = (x, *weights, None, *states)
    return b.ops(kind, *operands, outputs=count, **attributes)  # type: ignore[arg-type]


def _sequence(b: Builder, steps: Steps, has_batch: bool) -> ir.Value:
    """Return the inputs of all steps: [steps, batch, inputs] in the order of the sequence."""
    source, axis = steps.elements[0].source, steps.elements[0].axis
    low, high = sorted((steps.elements[0].index, steps.elements[-1].index))
    assert source.shape is not None
    if high - low + 1 != source.shape[axis]:
        ends = [b.const_i64([low]), b.const_i64([high + 1]), b.const_i64([axis])]
        source = b.op("Slice", source, *ends)
    rank = 3 if has_batch else 2
    if axis != 0:
        source = b.op("Transpose", source, perm=[axis, *(i for i in range(rank) if i != axis)])
    return source if has_batch else b.op("Unsqueeze", source, b.const_i64([1]))


def is_zero(value: ir.Value, constants: Constants) -> bool:
    """True for a constant of positive zeros, the default initial state of a layer."""
    array = constants.get(value, limit=None)
    return array is not None and not array.any() and not np.signbit(array).any()


def _weights(constants: Constants, cell: Cell) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return W, R and B in ONNX's layout, for one direction."""
    assert cell.state is not None
    cell_input = cell.input()
    *gate_weights, reset_weights = cell.state_weights(cell.state)
    # In a GRU, the weight of ``reset`` stands for that of the third gate.
    recurrent = gate_weights if cell.reset is None else [*gate_weights[:2], reset_weights]
    input_weights = [
        weight.array(constants) for weight in cell.input_weights(cell_input) if weight is not None
    ]
    state_weights = [weight.array(constants) for weight in recurrent if weight is not None]
    hidden = state_weights[0].shape[1]

    *gates, reset_bias = (_total(biases, hidden, constants) for biases in cell.biases())
    state_biases = [np.zeros_like(gate) for gate in gates]
    if cell.reset is not None:
        state_biases[-1] = reset_bias
    return (
        np.concatenate(input_weights)[None].astype(np.float32),
        np.concatenate(state_weights)[None].astype(np.float32),
        np.concatenate([*gates, *state_biases])[None].astype(np.float32),
    )


def _total(biases: tuple[Bias, ...], hidden: int, constants: Constants) -> np.ndarray:
    """Return the sum of ``biases``; zeros if there are none."""
    total = np.zeros(hidden, np.float32)
    for bias in biases:
        total = total + bias.array(constants)
    return total
