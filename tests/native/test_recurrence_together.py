"""LSTM, GRU and RNN with constant weights: the states of all samples are one matrix."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import Library, random_inputs, with_constants

import smelt
from smelt.runtime.onnxruntime import OnnxRuntime

UNITS = (33, 6)
"""One more than a panel has columns, and fewer than a vector has elements."""

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
CASES = {
    "lstm": ("LSTM", 9, "", 1),
    "lstm of one sample": ("LSTM", 1, ', direction = "reverse"', 1),
    "lstm both ways": ("LSTM", 3, ', direction = "bidirectional"', 2),
    "gru": ("GRU", 2, "", 1),
    "gru reset after the product": (
        "GRU",
        3,
        ', linear_before_reset = 1, direction = "bidirectional"',
        2,
    ),
    "rnn": ("RNN", 7, ', activations = ["Relu"]', 1),
}
"""Operator, samples, attributes and directions."""


def _graph(hidden: int, op: str, batch: int, attributes: str, directions: int) -> str:
    g = GATES[op] * hidden
    cell = f", float[{directions},{batch},{hidden}] c" if op == "LSTM" else ""
    results = "float[A,B,C,D] y, float[E,F,G] last" + (", float[H,I,J] cell" if cell else "")
    return (
        f"g (float[5,{batch},4] x, float[{directions},{g},4] w, float[{directions},{g},{hidden}] r,"
        f" float[{directions},{2 * g}] b, float[{directions},{batch},{hidden}] h{cell}) =>"
        f" ({results}) {{ y, last{', cell' if cell else ''} = "
        f"{op}<hidden_size = {hidden}{attributes}>(x, w, r, b, , h{', c' if cell else ''}) }}"
    )


GRAPHS = {
    f"{name}, {hidden} units": _graph(hidden, *case)
    for hidden in UNITS
    for name, case in CASES.items()
}


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(GRAPHS, constant="w r b", opset=21)


@pytest.mark.parametrize("name", GRAPHS)
def test_c_agrees_with_onnx_runtime(library: Library, name: str) -> None:
    library.check(name, random_inputs(library.models[name].source), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", [f"lstm both ways, {n} units" for n in UNITS])
def test_this_process_agrees_with_onnx_runtime(name: str) -> None:
    """With the widest vectors that this CPU has."""
    model = with_constants(GRAPHS[name], 21, "w r b")
    inputs = random_inputs(model)
    expected = OnnxRuntime(model)(*inputs)
    given = smelt.compile(model, target="host", engine="native")(*inputs)
    for got, want in zip(given, expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)
