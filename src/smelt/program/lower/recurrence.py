"""Lowers LSTM, GRU and RNN: one product for the inputs of all steps, then a Recurrence.

A Recurrence is the loop over the steps of one direction, with the products of the states.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.scope import is_dead
from smelt.program.dot_dims import DotDims
from smelt.program.instruction import REST, AttributeValue, Dim
from smelt.program.lower.builder import ABSENT, ProgramBuilder
from smelt.program.lower.registry import lowers
from smelt.program.recurrence import CELLS, Activation, activations

ORDERS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}
"""For each direction of a layer: True if it reads the sequence backwards."""


@dataclass
class _Layer:
    """One node while it is lowered.

    ``x`` is the slot of the input as [steps, batch, inputs], ``hidden`` the size of a state,
    ``directions`` their number. ``batch_first``: the node has the batch before the steps.
    """

    cx: ProgramBuilder
    node: ir.Node
    x: int
    batch_first: bool
    hidden: int
    directions: int

    def input_of(self, index: int, direction: int) -> int:
        """Return the slot of the part of input ``index`` for one direction; ABSENT if the node
        lacks the input.

        The dim of directions, such as the first of the weights, is gone.
        """
        value = self.cx.input(self.node, index)
        if value is None:
            return ABSENT
        axis = 1 if self.batch_first and index in (5, 6) else 0
        array = self.cx.constants.get(value, limit=None)
        if array is not None:
            return self.cx.constant(np.take(array, direction, axis), value.name or "weight")
        slot = self.cx.slot(value)
        shape = self.cx.shape(slot)
        end = direction + 1 if direction + 1 < self.directions else REST
        cut = _cut(self.cx, slot, axis, direction, end, 1)
        return self.cx.emit_new("Reshape", (cut,), (*shape[:axis], *shape[axis + 1 :]))


def _cut(cx: ProgramBuilder, slot: int, axis: int, start: int, end: int, rows: int) -> int:
    """Return the slot of a Slice from ``start`` to ``end`` along ``axis``, which has ``rows``."""
    shape = list(cx.shape(slot))
    shape[axis] = rows
    return cx.emit_new(
        "Slice", (slot,), shape, starts=(start,), ends=(end,), axes=(axis,), steps=(1,)
    )


@lowers("LSTM", "GRU", "RNN")
def recurrent(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit one ``Recurrence`` per direction, and a Concat of the results along that dim."""
    order = ORDERS.get(node.attributes.get_string("direction", "forward"))
    if order is None:
        raise cx.refuse("its direction is not forward, reverse or bidirectional")
    recurrent_weights = node.inputs[2]
    weights = cx.shape(cx.slot(recurrent_weights))
    if not isinstance(weights[2], int):
        raise cx.refuse_size("the hidden size is symbolic")
    batch_first, x = bool(node.attributes.get_int("layout", 0)), cx.slot(node.inputs[0])
    if batch_first:
        batch, steps, features = cx.shape(x)
        x = cx.emit_new("Transpose", (x,), (steps, batch, features), perm=(1, 0, 2))
    layer = _Layer(cx, node, x, batch_first, weights[2], len(order))
    functions = _functions(cx, node, len(order))
    per_direction = len(functions) // len(order)
    results = [
        _direction(
            layer,
            direction,
            reverse,
            functions[direction * per_direction : (direction + 1) * per_direction],
        )
        for direction, reverse in enumerate(order)
    ]
    for position, value in enumerate(node.outputs):
        if not is_dead(value):
            direction_slots = [slots[position] for slots in results]
            _join(layer, value, direction_slots, position)


def _functions(cx: ProgramBuilder, node: ir.Node, directions: int) -> list[Activation]:
    """Return the activations of all directions; refuses unknown names."""
    attr, cell = node.attributes.get("activations"), CELLS[node.op_type]
    names = list(attr.as_strings()) if attr is not None else list(cell.activations) * directions
    if len(names) != len(cell.activations) * directions:
        raise cx.refuse(f"it has {len(names)} activations for {directions} directions")
    numbers = []
    for name in ("activation_alpha", "activation_beta"):
        parameter = node.attributes.get(name)
        numbers.append(list(parameter.as_floats()) if parameter is not None else [])
    try:
        return activations(names, *numbers)
    except KeyError as error:
        raise cx.refuse(f"ONNX has no activation {error}") from None


def _direction(
    layer: _Layer, direction: int, reverse: bool, functions: list[Activation]
) -> tuple[int, ...]:
    """Emit one direction: a DotGeneral of all inputs, the biases, and the Recurrence.

    Return the slots of all states [T, B, H], of the last state [B, H] and, for an LSTM, of the last
    cell state.
    """
    cx, node = layer.cx, layer.node
    reset_after_product = node.op_type == "GRU" and bool(
        node.attributes.get_int("linear_before_reset", 0)
    )
    steps, batch, _ = cx.shape(layer.x)
    input_weights, recurrent_weights = layer.input_of(1, direction), layer.input_of(2, direction)
    gate_columns = CELLS[node.op_type].gates * layer.hidden
    dims = DotDims((2,), (1,))
    gates = cx.emit_new(
        "DotGeneral",
        (layer.x, input_weights),
        (steps, batch, gate_columns),
        dims=dims,
        semiring="sum_product",
    )
    gates, hidden_bias = _biased(layer, direction, gates, reset_after_product)
    transposed = cx.emit_new(
        "Transpose", (recurrent_weights,), cx.shape(recurrent_weights)[::-1], perm=(1, 0)
    )
    state = (batch, layer.hidden)
    dtype = cx.dtype(gates)
    outputs = [cx.new(dtype, (steps, *state), f"{node.name}/steps")]
    count = 2 if node.op_type == "LSTM" else 1
    outputs += [cx.new(dtype, state, f"{node.name}/state") for _ in range(count)]
    cell = layer.input_of(6, direction) if node.op_type == "LSTM" else ABSENT
    peepholes = layer.input_of(7, direction) if node.op_type == "LSTM" else ABSENT
    lengths = cx.slot(cx.input(node, 4))
    inputs = (
        gates,
        transposed,
        layer.input_of(5, direction),
        cell,
        peepholes,
        hidden_bias,
        lengths,
    )
    attributes = _attributes(node, reverse, functions, reset_after_product)
    cx.emit("Recurrence", inputs, outputs, **attributes)
    return tuple(outputs)


def _attributes(
    node: ir.Node, reverse: bool, functions: list[Activation], reset_after_product: bool
) -> dict[str, AttributeValue]:
    """Return the attributes of the Recurrence for one direction of ``node``."""
    return {
        "cell": node.op_type,
        "reverse": reverse,
        "activations": tuple(name for name, _, _ in functions),
        "alphas": tuple(alpha for _, alpha, _ in functions),
        "betas": tuple(beta for _, _, beta in functions),
        "clip": node.attributes.get_float("clip", 0.0),
        "input_forget": bool(node.attributes.get_int("input_forget", 0)),
        "linear_before_reset": reset_after_product,
    }


def _biased(
    layer: _Layer, direction: int, gates: int, reset_after_product: bool
) -> tuple[int, int]:
    """Return ``gates`` plus biases, and the slot of the bias that the Recurrence adds (or ABSENT).

    The bias of the node has one half for the inputs and one for the states. Their sum is added
    here, except with ``reset_after_product``: a GRU then scales the product with the state, and
    the state's bias of the candidate, by the reset gate. That part of the second half goes to the
    Recurrence; only the first ``common_size`` entries of both halves are added together.
    """
    cx, bias = layer.cx, layer.input_of(3, direction)
    if bias == ABSENT:
        return gates, ABSENT
    hidden = layer.hidden
    half_size = CELLS[layer.node.op_type].gates * hidden
    common_size = half_size - hidden if reset_after_product else half_size
    array = cx.program.constants.get(bias)
    if array is not None:
        both = np.concatenate(
            [
                array[:common_size] + array[half_size : half_size + common_size],
                array[common_size:half_size],
            ]
        )
        bias_before = cx.constant(both, "bias")
        bias_after = (
            cx.constant(array[half_size + common_size :].copy(), "bias")
            if reset_after_product
            else ABSENT
        )
    else:
        bias_before, bias_after = _computed_bias(layer, bias, common_size, half_size)
    return cx.emit_new("Add", (gates, bias_before), cx.shape(gates)), bias_after


def _computed_bias(layer: _Layer, bias: int, summed: int, size: int) -> tuple[int, int]:
    """Do with instructions what ``_biased`` does with a constant bias.

    ``bias`` has two halves of ``size`` entries. Return the slot of the bias for the gates: the sum
    of both halves in its first ``summed`` entries, the first half in the others. Return also the
    slot of the other entries of the second half, which the Recurrence adds (or ABSENT).
    """
    cx = layer.cx

    def cut(start: int, end: int) -> int:
        """Return the entries of ``bias`` from ``start`` to ``end``."""
        return _cut(cx, bias, 0, start, end if end < 2 * size else REST, end - start)

    added = cx.emit_new("Add", (cut(0, summed), cut(size, size + summed)), (summed,))
    if summed == size:
        return added, ABSENT
    added = cx.emit_new("Concat", (added, cut(summed, size)), (size,), axis=0)
    return added, cut(size + summed, 2 * size)


def _join(layer: _Layer, value: ir.Value, parts: list[int], result_number: int) -> None:
    """Emit the result ``value`` of the node from its parts, one slot for each direction.

    Result 0, all states, is [T, D, B, H]; the last states are [D, B, H]. With ``layout`` 1, the
    batch comes first.
    """
    cx, output = layer.cx, layer.cx.define(value)
    *steps, batch, hidden = cx.shape(parts[0])
    shaped = [_with_direction(cx, part, (*steps, 1, batch, hidden)) for part in parts]
    joined_shape: tuple[Dim, ...] = (*steps, len(parts), batch, hidden)
    if not layer.batch_first:
        if len(shaped) == 1:
            cx.emit("Reshape", (parts[0],), (output,))
        else:
            cx.emit("Concat", shaped, (output,), axis=len(steps))
        return
    joined = (
        shaped[0]
        if len(shaped) == 1
        else cx.emit_new("Concat", shaped, joined_shape, axis=len(steps))
    )
    cx.emit(
        "Transpose", (joined,), (output,), perm=(2, 0, 1, 3) if result_number == 0 else (1, 0, 2)
    )


def _with_direction(cx: ProgramBuilder, part: int, shape: tuple[Dim, ...]) -> int:
    """Return ``part`` reshaped to ``shape``, which has a dim of directions."""
    return cx.emit_new("Reshape", (part,), shape)
