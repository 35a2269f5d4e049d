"""Each fact that ONNX demands of operands has a model that breaks it, which no runtime runs."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
import onnxruntime
import pytest

import smelt
from smelt.errors import InvalidModel
from smelt.ir import text
from smelt.ir.operand_facts.check import SUBJECTS


class Broken(NamedTuple):
    """What does not hold, and the model."""

    fact: str
    opset: int
    graph: str

    @property
    def model(self) -> onnx.ModelProto:
        header = f'<ir_version: 10, opset_import: ["" : {self.opset}]> agraph '
        return onnx.parser.parse_model(header + self.graph)


def _read(entry: str) -> Broken:
    fact, line = entry.strip().split("\n")
    opset, _, graph = line.strip().removeprefix("opset ").partition(": ")
    return Broken(fact, int(opset), graph)


BROKEN = [
    _read(entry) for entry in (Path(__file__).parent / "broken.txt").read_text().split("\n\n")
]


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.graph.split("{ ")[1])
def test_operands_that_cannot_run_are_refused(case: Broken) -> None:
    with pytest.raises(InvalidModel) as caught:
        smelt.optimize(case.model)
    assert caught.value.code == "E317"
    assert f"does not hold: {case.fact}; operands: " in caught.value.why
    assert "node" in caught.value.at[0]
    assert caught.value.fix


@pytest.mark.parametrize("case", BROKEN, ids=lambda case: case.graph.split("{ ")[1])
def test_onnx_runtime_refuses_it_too(case: Broken) -> None:
    with pytest.raises(Exception, match="ONNXRuntimeError"):
        _run(case.model)


def _run(model: onnx.ModelProto) -> None:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    session.run(None, {x.name: _ones(x) for x in session.get_inputs()})


def _ones(value: onnxruntime.NodeArg) -> np.ndarray:
    types = {
        "tensor(float)": np.float32,
        "tensor(bool)": np.bool_,
        "tensor(uint8)": np.uint8,
        "tensor(int32)": np.int32,
        "tensor(string)": np.str_,
    }
    return np.ones(value.shape, types.get(value.type, np.int64))


def test_every_row_is_broken_once() -> None:
    rows = {fact for subject in SUBJECTS for facts in subject.FACTS.values() for fact, _ in facts}
    assert rows == {case.fact for case in BROKEN}


ADDS = "a = Add(x, z) y = Relu(a)"


@pytest.mark.parametrize(
    "graph",
    [
        f"agraph (float[2, 3] x, float[1, 3] z) => (float[2, 3] y) {{ {ADDS} }}",
        f"agraph (float[2, 3] x, float[N, 3] z) => (float[2, 3] y) {{ {ADDS} }}",
        f"agraph (float[0, 3] x, float[1] z) => (float[0, 3] y) {{ {ADDS} }}",
        "agraph (float[2] x, float[3] z) => (float[2] y) { dead = Add(x, z) y = Relu(x) }",
        """agraph (bool c, float[2] x, float[3] z) => (float[2] y) { y = If(c) <
            then_branch = other () => (float[2] p) { p = Add(x, z) },
            else_branch = this () => (float[2] q) { q = Relu(x) }> }""",
        """agraph (int64 n, float[2] x, float[3] z) => (float[2] y) <bool t = {1}> {
            y = Loop(n, t, x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] p)
            { d = Identity(c) p = Add(s, z) }> }""",
        """agraph (float[2, 3, 4] x, float[2, 3, 4] z) => (float[2, 3, 4] y)
            { y = LayerNormalization(x, z) }""",
        """agraph (float[1, 3, N, 8] x, float[M, 3, 3, 3] z) => (float[1, M, K, 6] y)
            { y = Conv(x, z) }""",
        """agraph (float[1, 4, 3, 2] x, float[2, 2, 3, 4] z) => (float[1, 2, 1, 1] y)
            { y = Conv<group = 2, pads = [0, 1, 0, 1]>(x, z) }""",
        """agraph (float[1, 1, 5, 5] x, float[1, 1, 3, 2] z) => (float[1, 1, 1, 1] y)
            { y = Conv<dilations = [2, 4]>(x, z) }""",
        """agraph (float[1, 4, 2, 2] x, float[4, 1, 2, 2] z) => (float[1, 2, 5, 3] y)
            { y = ConvTranspose<group = 2, strides = [2, 1], output_padding = [1, 0]>(x, z) }""",
        """agraph (float[1, 1, 3, 3] x) => (float[1, 1, 4, 4] y)
            { y = MaxPool<kernel_shape = [2, 2], pads = [1, 1, 1, 1]>(x) }""",
        """agraph (float[1, 4, 4] x) => (float[1, 1, 3, 3] y) { i = Constant<value_ints = [3, 3]>()
            b = Constant<value_ints = [2, 2]>() y = Col2Im(x, i, b) }""",
        """agraph (float[1, 4, 1] x) => (float[1, 1, 3, 2] y) { i = Constant<value_ints = [3, 2]>()
            b = Constant<value_ints = [2, 2]>()
            y = Col2Im<strides = [3, 2], dilations = [2, 1]>(x, i, b) }""",
        """agraph (float[N] s, float[4, 3] x) => (float[M] f, float[4, 3] y) {
            f, y = Scan<num_scan_inputs = 1, body = a (float[K] t, float[3] u) =>
            (float[L] p, float[3] q) { p = Relu(t) q = Relu(u) }>(s, x) }""",
        """agraph (float[2, 3] x, float[0, 4] z) => (float[2, 3] y)
            { q = SequenceConstruct(x, z) y = ConcatFromSequence<axis = 0>(q) }""",
        """agraph (float[2, N] x, float[4, M] z) => (float[6, N] y)
            { q = SequenceConstruct(x, z) y = ConcatFromSequence<axis = 0>(q) }""",
        """agraph (float[2, 3] x, float[2, 3] z, int64 i) => (float[2, 3] y)
            { q = SequenceConstruct(x, z) y = SequenceAt(q, i) }""",
        """agraph (bool c, float[2] x) => (float[2] y) { i = Constant<value_int = 5>()
            q = SequenceConstruct(x) y = If(c) <
            then_branch = other () => (float[2] p) { p = SequenceAt(q, i) },
            else_branch = this () => (float[2] q2) { q2 = Relu(x) }> }""",
        """agraph (float[5] x) => (float[1] y) { i = Constant<value_int = 2>()
            n = Constant<value_int = 2>() q = SplitToSequence(x, n) y = SequenceAt(q, i) }""",
        """agraph (float[2, 4, 6] x, float[1, 3, 6] w, float[1, 3, 3] r) => (float[2, 1, 4, 3] y)
            { y, h = RNN<hidden_size = 3, activations = ["Tanh", "Best"]>(x, w, r) }""",
        """agraph (float[2] x, float[2] z, bool c) => (float[2] y) { m = Mod<fmod = 1>(x, z)
            y = Relu(m) }""",
    ],
    ids=[
        "size 1",
        "open",
        "empty",
        "dead",
        "branch",
        "perhaps no round",
        "scale",
        "open filters",
        "a filter of the padded image",
        "a dilated filter of the image",
        "the most output padding",
        "the most padding",
        "a column for each place",
        "a column for each dilated place",
        "open states",
        "an empty part",
        "open parts",
        "any position",
        "a position in a branch",
        "the last part",
        "an activation too many",
        "fmod",
    ],
)
def test_unused_nodes_and_operands_that_may_run_pass(graph: str) -> None:
    smelt.optimize(text.parse(graph, 21))
