"""LSTM, GRU and RNN on C and the host, with all that ONNX lets them say."""

from __future__ import annotations

import re

import numpy as np
import pytest
from both_targets import BothTargets, by_reference, by_runtime
from c_library import compile_text, random_inputs

STEPS, BATCH, SIZE, HIDDEN = 4, 3, 2, 5
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def graph(
    op: str, attributes: str = "", directions: int = 1, given: str = "", dtype="float"
) -> str:
    """A layer of which the inputs named in ``given`` are given: bias, lengths, h, c, p."""
    g = GATES[op] * HIDDEN
    types = {
        "bias": f"{dtype}[{directions},{2 * g}]",
        "lengths": f"int32[{BATCH}]",
        "h": f"{dtype}[{directions},{BATCH},{HIDDEN}]",
        "c": f"{dtype}[{directions},{BATCH},{HIDDEN}]",
        "p": f"{dtype}[{directions},{3 * HIDDEN}]",
    }
    listed = [f"{type_} {name}" for name, type_ in types.items() if name in given.split()]
    names = [name if name in given.split() else "" for name in types]
    names = names if op == "LSTM" else names[:3]
    results = {"y": "float[A,B,C,D]", "last": "float[E,F,G]", "cell": "float[H,I,J]"}
    outputs = list(results)[: 3 if op == "LSTM" else 2]
    inputs = ", ".join(
        [
            f"{dtype}[{STEPS},{BATCH},{SIZE}] x",
            f"{dtype}[{directions},{g},{SIZE}] w",
            f"{dtype}[{directions},{g},{HIDDEN}] r",
            *listed,
        ]
    )
    typed = ", ".join(f"{results[name].replace('float', dtype)} {name}" for name in outputs)
    call = f"{op}<hidden_size = {HIDDEN}{attributes}>(x, w, r, {', '.join(names)})"
    return f"g ({inputs}) => ({typed}) {{ {', '.join(outputs)} = {call} }}"


BOTH = ', direction = "bidirectional"'
OTHERS = (
    ', activations = ["HardSigmoid", "ScaledTanh"]'
    ", activation_alpha = [0.3, 0.7], activation_beta = [0.4, 0.9]"
)
ALPHA_BETA = "activation_alpha = [0.4], activation_beta = [0.2]"
RUNTIME = {
    **{op.lower(): graph(op) for op in GATES},
    **{f"{op.lower()} backwards": graph(op, ', direction = "reverse"', given="bias h lengths")
       for op in GATES},
    **{f"{op.lower()} both ways": graph(op, BOTH, 2, "bias h c lengths") for op in GATES},
    "all of an lstm": graph("LSTM", BOTH, 2, "bias lengths h c p"),
    "clipped lstm": graph("LSTM", ", clip = 0.5", given="bias p"),
    "coupled lstm": graph("LSTM", ", input_forget = 1", given="bias"),
    "lstm of other functions": graph("LSTM", ', activations = ["Sigmoid", "Softsign", "Relu"]'),
    "gru reset after the product": graph("GRU", ", linear_before_reset = 1", given="bias h"),
    "gru of other functions": graph("GRU", OTHERS, given="bias"),
    "clipped gru": graph("GRU", ", clip = 0.25", given="bias"),
    **{f"rnn by {name}": graph("RNN", f', activations = ["{name}"], {ALPHA_BETA}', given="bias")
       for name in ("Relu", "LeakyRelu", "Elu", "Softplus", "ThresholdedRelu", "Affine")},
}  # fmt: skip
CONSTANT = "float[1,3,2] w = {0.1,-0.2,0.3,0.4,-0.5,0.6}, float[1,3,1] r = {0.7,-0.8,0.9}"
RUNTIME["constant weights"] = (
    f"g (float[4,3,2] x) => (float[A,B,C,D] y) <{CONSTANT}> {{ y = GRU<hidden_size = 1>(x, w, r) }}"
)
REFERENCE = {
    "batch first": (
        "g (float[3,4,2] x, float[1,20,2] w, float[1,20,5] r) => (float[A,B,C,D] y, float[E,F,G] h)"
        " { y, h = LSTM<hidden_size = 5, layout = 1>(x, w, r) }"
    ),
    "rnn of doubles": graph("RNN", dtype="double"),
}


@pytest.fixture(scope="module")
def library() -> BothTargets:
    return BothTargets(RUNTIME | REFERENCE, opset=21)


@pytest.mark.parametrize("name", [*RUNTIME, *REFERENCE])
def test_agrees(library: BothTargets, name: str) -> None:
    inputs = random_inputs(library.models[name].source)
    for value, array in zip(library.models[name].source.graph.inputs, inputs, strict=True):
        if value.name == "lengths":
            array[:] = [4, 0, 3]
    expect = by_runtime if name in RUNTIME else by_reference
    library.check_both(name, inputs, expect, atol=2e-5)


def test_sequences_without_steps_end_in_zero(library: BothTargets) -> None:
    source = library.models["gru backwards"].source
    x, w, r, bias, _, h = random_inputs(source)
    y, last = library.run("gru backwards", [x, w, r, bias, np.zeros(BATCH, np.int32), h])
    assert not y.any()
    assert not last.any()


def test_cells_of_floats_are_loops_that_call_nothing() -> None:
    graph = "g (float[4,3,2] x, float[1,20,2] w, float[1,20,5] r) => (float[A,B,C,D] y) { y = LSTM<hidden_size=5>(x, w, r) }"
    code = compile_text(graph, 21).files["model.c"].decode()
    assert re.findall(r"\b(?:expf|tanhf)\(", code) == []
