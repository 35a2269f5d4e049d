"""Readers of recurrent layers. In shapes: s steps, b batch, H hidden elements."""

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
"""For each gate of ONNX (input, output, forget, cell), its index in Core ML (i, f, o, c)."""
_GRU_GATES = (2, 0, 1)
"""For each gate of ONNX (update, reset, new), its index in Core ML (reset, new, update)."""
_PEEPHOLES = (0, 2, 1)
"""For each peephole of ONNX (input, output, forget), its index in Core ML (i, f, o)."""


def _activation(call: Call, name: str, default: str) -> str:
    """Return the ONNX activation for the parameter ``name``; raises E121 for an unknown one."""
    word = call.word(name, default)
    if word not in _ACTIVATIONS:
        raise call.refused(f"Core ML does not document the numbers of {word!r}")
    return _ACTIVATIONS[word]


def _direction(call: Call, both: bool) -> str:
    """Return the direction as ONNX calls it; ``both`` allows bidirectional. Raises E121."""
    word = call.word("direction", "forward")
    if word not in ("forward", "reverse") and not (both and word == "bidirectional"):
        raise call.refused(f"there is no direction {word!r}")
    return word


def _gates(call: Call, names: Sequence[str], order: Sequence[int]) -> ir.Value:
    """Return the weights ``names``, one for each direction, stacked along a new axis 0.

    ``order`` has, for each gate of ONNX, its index among the gates along axis 0 in Core ML.
    """
    arrays = []
    for name in names:
        array = call.array(name)
        parts = np.split(array, len(order)) if len(array) % len(order) == 0 else []
        if not parts:
            raise call.refused(f"{name} has {len(array)} rows, which are no {len(order)} gates")
        arrays.append(np.concatenate([parts[gate] for gate in order]))
    return call.scope.shared.constant(np.stack(arrays))


def _biases(call: Call, names: Sequence[str], order: Sequence[int], width: int) -> ir.Value | None:
    """Return the biases as (directions, 2 * gates * H), or None if there are none.

    ONNX has input and recurrent biases, Core ML their sum, so the recurrent ones are 0. ``width``
    is H; ``order`` is that of ``_gates``.
    """
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
    split = call.op("Reshape", state, call.ints([0, directions, -1]))
    return call.op("Transpose", split, perm=[1, 0, 2])


def _final(call: Call, state: ir.Value, directions: int) -> ir.Value:
    """Return a final state (directions, b, H) as (b, directions * H)."""
    if directions == 1:
        return call.op("Squeeze", state, call.ints([0]))
    batch_first = call.op("Transpose", state, perm=[1, 0, 2])
    return call.op("Reshape", batch_first, call.ints([0, -1]))


def _sequence(call: Call, every: ir.Value, last: ir.Value, directions: int) -> ir.Value:
    """Return the hidden states ``every``, (s, directions, b, H), as (s, b, directions * H).

    Without output_sequence, return those of the last step, as (1, b, directions * H).
    """
    if not call.flag("output_sequence"):
        return call.op("Unsqueeze", last, call.ints([0]))
    if directions == 1:
        return call.op("Squeeze", every, call.ints([1]))
    batch_second = call.op("Transpose", every, perm=[0, 2, 1, 3])
    return call.op("Reshape", batch_second, call.ints([0, 0, -1]))


def _width(call: Call) -> int:
    """Return H, the number of hidden elements; ``weight_hh`` is (gates * H, H)."""
    return int(call.array("weight_hh").shape[1])


@reads("lstm")
def _lstm(call: Call) -> list[ir.Value]:
    """Return the hidden states, the last hidden state and the last cell state of an LSTM."""
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
    """Return the hidden states and the last one of a GRU.

    The reset gate multiplies the product of the hidden state and its weights
    (``linear_before_reset`` in ONNX).
    """
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
    """Return the hidden states and the last one of an RNN with one activation."""
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
