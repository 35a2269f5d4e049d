"""Rows for RNN, GRU and LSTM: MIL's lstm if it computes the layer, else the layer unrolled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from smelt.targets.coreml.call import Call
from smelt.targets.coreml.recurrent_layer import ACTIVATIONS, DEFAULTS, Layer
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.rows.products import linear
from smelt.targets.coreml.rows.slices import take
from smelt.targets.coreml.writer import Refused, Val

MOST_STEPS = 128
"""A layer of more time steps is not unrolled."""

Step: TypeAlias = Callable[[Layer, int, Val, tuple[Val, ...]], tuple[Val, ...]]
"""Computes one time step: from the layer, the direction, ``x_t @ W.T + bias`` and the states
before, it returns the states after."""


@writes("RNN", "GRU", "LSTM")
def recurrent(c: Call) -> None:
    """Write a layer as lstm, or step by step."""
    layer = Layer(c)
    if layer.name == "LSTM" and _fits(layer):
        _lstm(layer)
        return
    if layer.steps is None or layer.steps > MOST_STEPS:
        raise Refused(f"its number of steps is open, or above {MOST_STEPS}")
    outputs = [_direction(layer, number, back) for number, back in enumerate(layer.directions)]
    _declare_results(layer, outputs)


def _direction(layer: Layer, direction: int, backward: bool) -> tuple[Val, list[Val]]:
    """Unroll one direction; return all hidden states (step, batch, size), and the last states.

    The product of all inputs by W is one operation, from which each step takes its row.
    """
    c = layer.c
    products = linear(c, layer.x, layer.w[direction], _input_bias(layer, direction))
    states = tuple(
        layer.initial(index, direction) for index in ((5, 6) if layer.name == "LSTM" else (5,))
    )
    rows: list[Val] = []
    assert layer.steps is not None
    for number in range(layer.steps):
        at = layer.steps - 1 - number if backward else number
        row = take(c, products, np.asarray(at), 0)
        states = STEPS[layer.name](layer, direction, row, states)
        rows.append(states[0])
    ordered = list(reversed(rows)) if backward else rows
    parts = [c.expand(row, [0]) for row in ordered]
    dims = (layer.steps, *rows[0].dims)
    whole = (
        parts[0]
        if len(parts) == 1
        else c.w.op("concat", rows[0].element, dims, values=parts, axis=0, interleave=False)
    )
    return whole, list(states)


def _input_bias(layer: Layer, direction: int) -> np.ndarray:
    """Return the bias to add to the product of the inputs: the sum of both biases.

    In a GRU with linear_before_reset, the reset gate multiplies the recurrent bias of the last
    gate, which is left out here.
    """
    if layer.name == "GRU" and layer.c.attribute("linear_before_reset"):
        kept = layer.rb[direction].copy()
        kept[2 * layer.size :] = 0
        return np.asarray(layer.wb[direction] + kept)
    return np.asarray(layer.wb[direction] + layer.rb[direction])


def _parts(layer: Layer, x: Val, count: int) -> list[Val]:
    """Return ``count`` gates, which are equal parts of the last axis of ``x``."""
    results = [(x.element, (*x.dims[:-1], layer.size))] * count
    return layer.c.w.ops("split", results, x=x, split_sizes=[layer.size] * count, axis=-1)


def _rnn_step(layer: Layer, direction: int, row: Val, states: tuple[Val, ...]) -> tuple[Val, ...]:
    """Return f(x W + h R + b)."""
    c = layer.c
    total = c.op("add", row, linear(c, states[0], layer.r[direction], None))
    return (layer.activate(direction, 0, total),)


def _gru_step(layer: Layer, direction: int, row: Val, states: tuple[Val, ...]) -> tuple[Val, ...]:
    """Return (1 - z) * n + z * h; the reset gate multiplies h, or with linear_before_reset the
    product of h and R."""
    c, size, r = layer.c, layer.size, layer.r[direction]
    hidden = states[0]
    update_x, reset_x, new_x = _parts(layer, row, 3)
    products = linear(c, hidden, r[: 2 * size], None)
    update_h, reset_h = _parts(layer, products, 2)
    update = layer.activate(direction, 0, c.op("add", update_x, update_h))
    reset = layer.activate(direction, 0, c.op("add", reset_x, reset_h))
    if c.attribute("linear_before_reset"):
        product = linear(c, hidden, r[2 * size :], layer.rb[direction][2 * size :])
        inner = c.op("mul", reset, product)
    else:
        inner = linear(c, c.op("mul", reset, hidden), r[2 * size :], None)
    new = layer.activate(direction, 1, c.op("add", new_x, inner))
    rest = c.op("mul", _one_minus(c, update), new)
    return (c.op("add", rest, c.op("mul", update, hidden)),)


def _one_minus(c: Call, x: Val) -> Val:
    """Return 1 - x."""
    return c.w.op("sub", x.element, x.dims, x=1.0, y=x)


def _lstm_step(layer: Layer, direction: int, row: Val, states: tuple[Val, ...]) -> tuple[Val, ...]:
    """Return hidden state and cell: c' = f * c + i * g, h' = o * act(c').

    Gates are in ONNX's order i, o, f, c. A peephole adds the weighted cell to a gate.
    """
    c, (hidden, cell) = layer.c, states
    total = c.op("add", row, linear(c, hidden, layer.r[direction], None))
    gates = _parts(layer, total, 4)
    peep: list[Any] = [None] * 3
    if layer.peephole is not None:
        peep = list(layer.peephole[direction].reshape(3, layer.size))
    read = _peeked(c, gates[0], cell, peep[0])
    forget = _peeked(c, gates[2], cell, peep[2])
    entry = layer.activate(direction, 0, read)
    kept = (
        _one_minus(c, entry)
        if c.attribute("input_forget")
        else layer.activate(direction, 0, forget)
    )
    new = layer.activate(direction, 1, gates[3])
    cell = c.op("add", c.op("mul", kept, cell), c.op("mul", entry, new))
    output = layer.activate(direction, 0, _peeked(c, gates[1], cell, peep[1]))
    name = layer.activations[direction * 3 + 2]
    return c.op("mul", output, c.op(ACTIVATIONS[name], cell)), cell


def _peeked(c: Call, gate: Val, cell: Val, weight: np.ndarray | None) -> Val:
    """Return ``gate + weight * cell``, or ``gate`` without a peephole."""
    if weight is None:
        return gate
    return c.op("add", gate, c.op("mul", cell, c.constant(weight, cell.element, "peephole")))


STEPS: dict[str, Step] = {"RNN": _rnn_step, "GRU": _gru_step, "LSTM": _lstm_step}


def _declare_results(layer: Layer, outputs: list[tuple[Val, list[Val]]]) -> None:
    """Declare the results of the node from the hidden states and last states of each direction.

    They are (step, direction, batch, size) and (direction, batch, size), or batch first.
    """
    c = layer.c
    rows = _joined(c, [c.expand(whole, [1]) for whole, _ in outputs], 1)
    lasts = [
        _joined(c, [c.expand(states[number], [0]) for _, states in outputs], 0)
        for number in range(len(outputs[0][1]))
    ]
    if layer.batch_first:
        rows = c.transpose(rows, [2, 0, 1, 3])
        lasts = [c.transpose(each, [1, 0, 2]) for each in lasts]
    c.done(rows, *lasts)


def _joined(c: Call, values: list[Val], axis: int) -> Val:
    """Return values that have size 1 along ``axis``, concatenated along it."""
    if len(values) == 1:
        return values[0]
    dims = list(values[0].dims)
    dims[axis] = len(values)
    kind = values[0].element
    return c.w.op("concat", kind, tuple(dims), values=values, axis=axis, interleave=False)


def _fits(layer: Layer) -> bool:
    """True if MIL's lstm computes the layer: no clip, no coupled gates, no peepholes, the default
    activations, and float32 before iOS 17."""
    usual = list(DEFAULTS["LSTM"]) * len(layer.directions)
    plain = layer.clip is None and not layer.c.attribute("input_forget")
    wide = layer.c.w.ios >= 17 or not layer.c.half
    return plain and wide and layer.activations == usual and layer.peephole is None


def _reordered(array: np.ndarray) -> np.ndarray:
    """Return the gates of a weight, along axis 0, in MIL's order i, f, o, c; ONNX has
    i, o, f, c.
    """
    entry, output, forget, cell = np.split(array, 4)
    return np.concatenate([entry, forget, output, cell])


def _lstm(layer: Layer) -> None:
    """Write one lstm for all directions. MIL joins directions along the last axis, so its results
    are split again."""
    c, kind = layer.c, layer.x.element
    count = len(layer.directions)
    weights = _lstm_weights(layer)
    more: dict[str, Any] = {
        "direction": c.attribute("direction"),
        "output_sequence": True,
        "recurrent_activation": "sigmoid",
        "cell_activation": "tanh",
        "activation": "tanh",
    }
    width = count * layer.size
    last = (kind, (layer.batch, width))
    results = [(kind, (layer.steps, layer.batch, width)), last, last]
    label = next((each.name for each in c.node.outputs if each.name), "lstm") or "lstm"
    rows, hidden, cell = c.w.ops(
        "lstm",
        results,
        name=label,
        x=layer.x,
        initial_h=_initial_of_all(layer, 5),
        initial_c=_initial_of_all(layer, 6),
        **weights,
        **more,
    )
    outputs = []
    for number in range(count):
        columns = np.arange(number * layer.size, (number + 1) * layer.size)
        parts = [
            each if count == 1 else take(c, each, columns, each.rank - 1)
            for each in (rows, hidden, cell)
        ]
        outputs.append((parts[0], parts[1:]))
    _declare_results(layer, outputs)


def _lstm_weights(layer: Layer) -> dict[str, Any]:
    """Return the weights and biases of all directions by MIL's names, gates in MIL's order."""
    weights: dict[str, Any] = {}
    for number, suffix in enumerate(("", "_back")[: len(layer.directions)]):
        for name, array in (
            (f"weight_ih{suffix}", layer.w[number]),
            (f"weight_hh{suffix}", layer.r[number]),
            (f"bias{suffix}", layer.wb[number] + layer.rb[number]),
        ):
            weights[name] = layer.c.constant(_reordered(array), layer.x.element, name)
    return weights


def _initial_of_all(layer: Layer, index: int) -> Val:
    """Return the initial states in input ``index``, (batch, directions * size)."""
    count = len(layer.directions)
    states = [layer.initial(index, number) for number in range(count)]
    if count == 1:
        return states[0]
    dims = (layer.batch, count * layer.size)
    kind = layer.x.element
    return layer.c.w.op("concat", kind, dims, values=states, axis=1, interleave=False)
