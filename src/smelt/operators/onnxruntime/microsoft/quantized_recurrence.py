"""``DynamicQuantizeLSTM``: an LSTM whose weights are bytes, as dynamic quantization creates it.

Weights are transposed: W is D,I,4*H and R is D,H,4*H, for D directions, I input features and H
hidden units. There is a scale and a zero point for each direction, or for each of its 4*H columns.
X is quantized as by DynamicQuantizeLinear, as in ONNX Runtime's CPU kernel. The kernel also rounds
the hidden state to bytes at every step, by the range of the samples of one of its threads. The body
keeps the state in float, so its results differ from the kernel's by such rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim
from smelt.operators.declare import Arguments, Attribute, Attributes, Computed, Result
from smelt.operators.inputs import first, input_at
from smelt.operators.onnxruntime.microsoft.declared import Values, floats, ints, operator
from smelt.operators.onnxruntime.microsoft.quantized_products import quantized_at_run_time

FLOAT = ir.DataType.FLOAT
DEFAULT = ("sigmoid", "tanh", "tanh")
KINDS = ir.AttributeType


def _directions(attributes: Attributes) -> int:
    """Return the number of directions."""
    return 2 if attributes["direction"] == "bidirectional" else 1


def _infer(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the types of all hidden states, and of the last hidden and cell state."""
    x, r = first(inputs), input_at(inputs, 2)
    if x.shape is None or r is None or r.shape is None:
        return (Result(FLOAT, None),) * 3
    count = _directions(attributes)
    steps, batch, hidden = x.shape[0], x.shape[1], r.shape[1]
    steps_shape: list[Dim] = [steps, count, batch, hidden]
    last = Result(FLOAT, ir.Shape([count, batch, hidden]))
    return (Result(FLOAT, ir.Shape(steps_shape)), last, last)


def _weights(
    codes: np.ndarray | None, scale: np.ndarray | None, zero: np.ndarray | None
) -> np.ndarray:
    """Return the floats that the bytes stand for, per direction."""
    assert codes is not None
    assert scale is not None
    assert zero is not None
    count = len(codes)
    centred = codes.astype(np.float32) - zero.astype(np.float32).reshape(count, 1, -1)
    return np.asarray(centred * scale.reshape(count, 1, -1))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    """Return the logistic function, without overflow."""
    return np.asarray((1 + np.tanh(x / 2)) / 2)


def _run(
    gates: np.ndarray,
    r: np.ndarray,
    peepholes: np.ndarray,
    state: tuple[np.ndarray, np.ndarray],
    order: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Run one direction; return all hidden states, the last hidden state and the last cell state.

    ``order`` has, for each step and sample, the row of the sequence, or -1 beyond its end.
    ``state`` is updated in place. Gates are ordered i, o, f, c as in ONNX's LSTM.
    """
    hidden, cell = state
    all_hidden = np.zeros((*gates.shape[:2], r.shape[0]), np.float32)
    for rows in order:
        active = np.flatnonzero(rows >= 0)
        sequence_rows = rows[active]
        input_gate, output_gate, forget_gate, candidate = np.split(
            gates[sequence_rows, active] + hidden[active] @ r, 4, -1
        )
        input_peephole, output_peephole, forget_peephole = np.split(peepholes, 3)
        forget = _sigmoid(forget_gate + forget_peephole * cell[active])
        cell[active] = forget * cell[active] + _sigmoid(
            input_gate + input_peephole * cell[active]
        ) * np.tanh(candidate)
        hidden[active] = all_hidden[sequence_rows, active] = _sigmoid(
            output_gate + output_peephole * cell[active]
        ) * np.tanh(cell[active])
    return all_hidden, hidden, cell


def _has_default_functions(attributes: Attributes) -> bool:
    """True if the functions are the defaults of an LSTM and nothing is clipped."""
    names = attributes["activations"]
    functions = tuple(str(name).lower() for name in names) if isinstance(names, tuple) else DEFAULT
    is_default = functions == DEFAULT * (len(functions) // 3)
    return is_default and not attributes["clip"] and not attributes["input_forget"]


def _order(lengths: np.ndarray, steps: int, backward: bool) -> np.ndarray:
    """Return, for each step and sample, the row of the sequence; -1 beyond its end."""
    step = np.arange(steps)[:, None]
    rows = lengths - 1 - step if backward else step
    return np.where(step < lengths, rows, -1)


def _reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return all hidden states, and the last hidden and cell state.

    Raises ValueError for activations other than the defaults of an LSTM.
    """
    if not _has_default_functions(attributes):
        raise ValueError("the reference has no other functions than Sigmoid, Tanh, Tanh")
    x, w, r, bias, lengths, h, c, peepholes, *scales = inputs
    assert x is not None
    codes, scale, zero = quantized_at_run_time(x)
    real = (codes.astype(np.float32) - zero.astype(np.float32)) * scale
    input_weights, recurrent_weights = _weights(w, *scales[:2]), _weights(r, *scales[2:])
    count, hidden = recurrent_weights.shape[:2]
    steps, batch = x.shape[:2]
    ends = np.full(batch, steps) if lengths is None else lengths
    shape = (count, batch, hidden)
    first_h, first_c = (np.zeros(shape, np.float32) if a is None else a.copy() for a in (h, c))
    biases = np.zeros((count, 2, 4 * hidden), np.float32) if bias is None else bias
    biases = biases.reshape(count, 2, 4 * hidden).sum(1)
    peephole_weights = np.zeros((count, 3 * hidden), np.float32) if peepholes is None else peepholes
    all_hidden = np.zeros((steps, count, batch, hidden), np.float32)
    for direction in range(count):
        backward = direction == 1 or attributes["direction"] == "reverse"
        order = _order(ends, steps, backward)
        gates = real @ input_weights[direction] + biases[direction]
        all_hidden[:, direction], *_ = _run(
            gates,
            recurrent_weights[direction],
            peephole_weights[direction],
            (first_h[direction], first_c[direction]),
            order,
        )
    return all_hidden, first_h, first_c


def _dense(b: Builder, operands: Values, count: int) -> ir.Value:
    """Build the dequantized weights in the layout of ONNX's LSTM."""
    codes, scale, zero = operands
    column = b.constant(np.array([count, 1, -1]))
    real = b.op("Cast", codes, to=int(FLOAT))
    centre = b.op("Reshape", b.op("Cast", zero, to=int(FLOAT)), column)
    scaled = b.op("Mul", b.op("Sub", real, centre), b.op("Reshape", scale, column))
    return b.op("Transpose", scaled, perm=[0, 2, 1])


def _body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...] | None:
    """Build an LSTM of the quantized and dequantized input and of the dequantized weights."""
    x, w, r = first(inputs), inputs[1], inputs[2]
    assert r is not None
    if r.shape is None or not isinstance(hidden := r.shape[1], int):
        return None
    codes, scale, zero = b.ops("DynamicQuantizeLinear", x, outputs=3)
    count = _directions(attributes)
    operands = (
        b.op("DequantizeLinear", codes, scale, zero),
        _dense(b, (w, *inputs[8:10]), count),
        _dense(b, (r, *inputs[10:12]), count),
        *inputs[3:8],
    )
    options: dict[str, Any] = {**attributes, "hidden_size": hidden}
    return b.ops("LSTM", *operands, outputs=3, **options)


OPERATORS = (
    operator(
        "DynamicQuantizeLSTM",
        "LSTM with weights of bytes, an input that is quantized at run time, and a state in float",
        inputs=(
            *("X", "W", "R", "B?", "sequence_lens?", "initial_h?", "initial_c?", "P?"),
            *("W_scale", "W_zero_point", "R_scale", "R_zero_point"),
        ),
        outputs=("Y?", "Y_h?", "Y_c?"),
        attributes=(
            Attribute("direction", KINDS.STRING, "forward"),
            Attribute("hidden_size", KINDS.INT),
            Attribute("activation_alpha", KINDS.FLOATS),
            Attribute("activation_beta", KINDS.FLOATS),
            Attribute("activations", KINDS.STRINGS),
            *floats(clip=None),
            *ints(input_forget=0),
        ),
        least_ranks={"X": 3, "W": 3, "R": 3},
        infer=_infer,
        reference=_reference,
        body=_body,
    ),
)
