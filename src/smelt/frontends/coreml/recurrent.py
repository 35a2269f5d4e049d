"""Read recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.registry import reads

_ACTIVATIONS = {"linear": "Affine", "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh"}
"""The ONNX activation for each activation of Core ML. Others are refused: Core ML does not
document their parameters."""

_LSTM_GATES = (0, 2, 1, 3)
"""Input, output, forget and cell gate, the order of ONNX, in input, forget, output, cell."""
_GRU_GATES = (2, 0, 1)
"""Update, reset and new gate, the order of ONNX, in reset, new, update."""
_PEEPHOLES = (0, 2, 1)


def _activation(call: Call, name: str, default: str) -> str:
    """Return an activation of ONNX."""
    word = call.word(name, default)
    if word not in _ACTIVATIONS:
        raise call.refused(f"Core ML does not document the numbers of {word!r}")
    return _ACTIVATIONS[word]


def _direction(call: Call, both: bool) -> str:
    """Return the direction, and refuse an unknown one."""
    word = call.word("direction", "forward")
    if word not in ("forward", "reverse") and not (both and word == "bidirectional"):
        raise call.refused(f"there is no direction {word!r}")
    return word


def _gates(call: Call, names: Sequence[str], order: Sequence[int]) -> ir.Value:
    """Return the weights ``names``, one a direction, with their gates in another order."""
    arrays = []
    for name in names:
        array = call.array(name)
        parts = np.split(array, len(order)) if len(array) % len(order) == 0 else []
        if not parts:
            raise call.refused(f"{name} has {len(array)} rows, which are no {len(order)} gates")
        arrays.append(np.concatenate([parts[gate] for gate in order]))
    return call.scope.shared.constant(np.stack(arrays))


def _biases(call: Call, names: Sequence[str], order: Sequence[int], width: int) -> ir.Value | None:
    """Return input biases of each direction, with recurrent biases of 0 behind them."""
    if not any(call.has(name) for name in names):
        return None
    assert call.x.dtype is not None
    dtype, rows = call.x.dtype.numpy(), []
    for name in names:
        bias = call.array(name, np.zeros(len(order) * width, dtype))
        parts = np.split(bias, len(order))
        rows.append(np.concatenate([*(parts[gate] for gate in order), np.zeros_like(bias)]))
    return call.scope.shared.constant(np.stack(rows))


def _initial(call: Call, name: str, directions: int) -> ir.Value:
    """Return an initial state (b, directions * H) as (directions, b, H)."""
    state = call.value(name)
    if directions == 1:
        return call.op("Unsqueeze", state, call.ints([0]))
    cut = call.op("Reshape", state, call.ints([0, directions, -1]))
    return call.op("Transpose", cut, perm=[1, 0, 2])


def _final(call: Call, state: ir.Value, directions: int) -> ir.Value:
    """Return a final state (directions, b, H) as (b, directions * H)."""
    if directions == 1:
        return call.op("Squeeze", state, call.ints([0]))
    turned = call.op("Transpose", state, perm=[1, 0, 2])
    return call.op("Reshape", turned, call.ints([0, -1]))


def _sequence(call: Call, every: ir.Value, last: ir.Value, directions: int) -> ir.Value:
    """Return the hidden states (s, directions, b, H) of all steps as (s, b, directions * H), or
    those of the final step."""
    if not call.flag("output_sequence"):
        return call.op("Unsqueeze", last, call.ints([0]))
    if directions == 1:
        return call.op("Squeeze", every, call.ints([1]))
    turned = call.op("Transpose", every, perm=[0, 2, 1, 3])
    return call.op("Reshape", turned, call.ints([0, 0, -1]))


def _width(call: Call) -> int:
    """Return the number of hidden elements."""
    return int(call.array("weight_hh").shape[1])


@reads("lstm")
def _lstm(call: Call) -> list[ir.Value]:
    """Return the hidden states, the final hidden state and the final memory of an LSTM."""
    direction = _direction(call, both=True)
    ends = ("", "_back") if direction == "bidirectional" else ("",)
    if call.has("clip"):
        raise call.refused("it clips the cell gate, where ONNX clips all gates")
    width, count = _width(call), len(ends)
    names = ("recurrent_activation", "cell_activation", "activation")
    defaults = ("sigmoid", "tanh", "tanh")
    activations = [_activation(call, n, d) for n, d in zip(names, defaults, strict=True)]
    peepholes = None
    if any(call.has(f"peephole{end}") for end in ends):
        rows = [call.array(f"peephole{end}", np.zeros(3 * width)) for end in ends]
        parts = [np.split(row, 3) for row in rows]
        ordered = [np.concatenate([part[gate] for gate in _PEEPHOLES]) for part in parts]
        assert call.x.dtype is not None
        peepholes = call.scope.shared.constant(np.stack(ordered).astype(call.x.dtype.numpy()))
    every, hidden, memory = call.builder.ops(
        "LSTM",
        call.x,
        _gates(call, [f"weight_ih{end}" for end in ends], _LSTM_GATES),
        _gates(call, [f"weight_hh{end}" for end in ends], _LSTM_GATES),
        _biases(call, [f"bias{end}" for end in ends], _LSTM_GATES, width),
        None,
        _initial(call, "initial_h", count),
        _initial(call, "initial_c", count),
        peepholes,
        outputs=3,
        hidden_size=width,
        direction=direction,
        activations=activations * count,
    )
    last = _final(call, hidden, count)
    return [_sequence(call, every, last, count), last, _final(call, memory, count)]


@reads("gru")
def _gru(call: Call) -> list[ir.Value]:
    """Return the hidden states and the final one of a GRU whose reset gate multiplies the product
    of the hidden state with its weights."""
    direction = _direction(call, both=False)
    if call.has("input_bias") or call.flag("reset_after"):
        raise call.refused("Core ML documents reset_after and input_bias in words that contradict")
    width = _width(call)
    activations = [
        _activation(call, "recurrent_activation", "sigmoid"),
        _activation(call, "activation", "tanh"),
    ]
    every, hidden = call.builder.ops(
        "GRU",
        call.x,
        _gates(call, ["weight_ih"], _GRU_GATES),
        _gates(call, ["weight_hh"], _GRU_GATES),
        _biases(call, ["bias"], _GRU_GATES, width),
        None,
        _initial(call, "initial_h", 1),
        outputs=2,
        hidden_size=width,
        direction=direction,
        activations=activations,
        linear_before_reset=1,
    )
    last = _final(call, hidden, 1)
    return [_sequence(call, every, last, 1), last]


@reads("rnn")
def _rnn(call: Call) -> list[ir.Value]:
    """Return the hidden states and the final one of a plain recurrent layer."""
    direction, width = _direction(call, both=False), _width(call)
    every, hidden = call.builder.ops(
        "RNN",
        call.x,
        _gates(call, ["weight_ih"], (0,)),
        _gates(call, ["weight_hh"], (0,)),
        _biases(call, ["bias"], (0,), width),
        None,
        _initial(call, "initial_h", 1),
        outputs=2,
        hidden_size=width,
        direction=direction,
        activations=[_activation(call, "activation", "tanh")],
    )
    last = _final(call, hidden, 1)
    return [_sequence(call, every, last, 1), last]
