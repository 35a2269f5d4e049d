"""MIL recurrences and quantization: read and run, they agree with NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from frontends.coreml.rows import F, Row, Rows, f, i

ROWS = Rows()
row = ROWS.add


# Recurrences.
def sigmoid(x: np.ndarray) -> np.ndarray:
    """The logistic function."""
    return 1 / (1 + np.exp(-x))


def lstm(x, h, c, wi, wh, b, p=None):
    """The hidden states of all steps, and the last memory; gates are input, forget, output, cell."""
    states = []
    p = np.zeros(3 * h.shape[1]) if p is None else p
    pi, pf, po = np.split(p, 3)
    for step in x:
        gi, gf, go, gz = np.split(step @ wi.T + h @ wh.T + b, 4, -1)
        gi, gf = sigmoid(gi + pi * c), sigmoid(gf + pf * c)
        c = gf * c + gi * np.tanh(gz)
        h = sigmoid(go + po * c) * np.tanh(c)
        states.append(h)
    return np.stack(states), c


STEPS, HIDDEN, MEMORY = f(5, 2, 3), f(2, 4), f(2, 4)
GATES = {"weight_ih": f(16, 3), "weight_hh": f(16, 4), "bias": f(16)}
STATE = {"x": STEPS, "initial_h": HIDDEN, "initial_c": MEMORY}
EVERY, LAST = lstm(STEPS, HIDDEN, MEMORY, *GATES.values())
row("lstm", STATE, EVERY, EVERY[-1], LAST, **GATES, output_sequence=True)
row("lstm", STATE, EVERY[-1:], EVERY[-1], LAST, **GATES)
PEEPHOLE = f(12)
SEEN, KEPT = lstm(STEPS, HIDDEN, MEMORY, *GATES.values(), PEEPHOLE)
row("lstm", STATE, SEEN, SEEN[-1], KEPT, **GATES, peephole=PEEPHOLE, output_sequence=True)
BACK = {"weight_ih_back": f(16, 3), "weight_hh_back": f(16, 4), "bias_back": f(16)}
H2, M2 = f(2, 8), f(2, 8)
FIRST = lstm(STEPS, H2[:, :4], M2[:, :4], *GATES.values())
SECOND = lstm(STEPS[::-1], H2[:, 4:], M2[:, 4:], *BACK.values())
row(
    "lstm",
    {"x": STEPS, "initial_h": H2, "initial_c": M2},
    np.concatenate([FIRST[0], SECOND[0][::-1]], -1),
    np.concatenate([FIRST[0][-1], SECOND[0][-1]], -1),
    np.concatenate([FIRST[1], SECOND[1]], -1),
    **GATES,
    **BACK,
    direction="bidirectional",
    output_sequence=True,
)


def gru(x, h, wi, wh, b):
    """The hidden states of all steps; gates are reset, new, update."""
    states = []
    for step in x:
        ir, io, iz = np.split(step @ wi.T + b, 3, -1)
        hr, ho, hz = np.split(h @ wh.T, 3, -1)
        r, z = sigmoid(ir + hr), sigmoid(iz + hz)
        h = (1 - z) * np.tanh(io + r * ho) + z * h
        states.append(h)
    return np.stack(states)


G3 = {"weight_ih": f(12, 3), "weight_hh": f(12, 4), "bias": f(12)}
SEQ = {"x": STEPS, "initial_h": HIDDEN}
STATES = gru(STEPS, HIDDEN, *G3.values())
row("gru", SEQ, STATES, STATES[-1], **G3, output_sequence=True)
TURNED = gru(STEPS[::-1], HIDDEN, *G3.values())[::-1]
row("gru", SEQ, TURNED, TURNED[0], **G3, direction="reverse", output_sequence=True)


def rnn(x, h, wi, wh, b):
    """The hidden states of all steps."""
    states = []
    for step in x:
        h = np.maximum(step @ wi.T + h @ wh.T + b, 0)
        states.append(h)
    return np.stack(states)


R1 = {"weight_ih": f(4, 3), "weight_hh": f(4, 4), "bias": f(4)}
OUT = rnn(STEPS, HIDDEN, *R1.values())
row("rnn", SEQ, OUT[-1:], OUT[-1], **R1, activation="relu")

# Quantization.
POINT = np.array([3, -2], np.int8)
FACTOR = np.array([0.5, 0.25], F)
HALVES = np.array([[-0.75, 0.25, 100], [0.125, 0.375, -100]], F)
row(
    "quantize",
    {"input": HALVES},
    lambda x: np.clip(np.round(x / FACTOR[:, None]) + POINT[:, None], -128, 127).astype(np.int8),
    scale=FACTOR,
    zero_point=POINT,
    axis=0,
    output_dtype="int8",
)
row(
    "quantize",
    {"input": HALVES},
    lambda x: np.clip(np.round(x / F(0.5)), 0, 255).astype(np.uint8),
    scale=F(0.5),
    output_dtype="uint8",
)
WHOLE = i(2, 3).astype(np.int8)
row(
    "dequantize",
    {"input": WHOLE},
    lambda x: FACTOR[:, None] * (x.astype(F) - POINT[:, None]),
    scale=FACTOR,
    zero_point=POINT,
    axis=0,
)
row("dequantize", {"input": WHOLE}, lambda x: F(0.5) * x.astype(F), scale=F(0.5))


@pytest.mark.parametrize("row_", ROWS, ids=ROWS.ids())
def test_it_computes_what_numpy_computes(row_: Row) -> None:
    row_.check()
