"""What a consumer does not support of a model: by operator and reason, with a remedy."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.consumers.consumer import Consumer, Takes, takes
from smelt.consumers.describe import limits
from smelt.consumers.find import consumers
from smelt.consumers.obstacle import unsupported_nodes
from smelt.consumers.readers import readers
from smelt.ir import text

FLOATS = frozenset({ir.DataType.FLOAT})
SMALL = Consumer(
    "small",
    "a consumer of few forms",
    "this test",
    opsets=(13, 20),
    operators=takes(
        "Relu",
        Conv=Takes(ranks=(4, 4), constant=(1,), attributes={"group": (1,)}),
        Sigmoid=Takes(types=FLOATS),
        GridSample=Takes(newest=16),
        Add=Takes(samples=False),
        Gather=Takes(unwritten=("axis",)),
        LayerNormalization=Takes(present=(2,)),
        Pad=Takes(written=("mode",)),
        Resize=Takes(
            attributes={"mode": ("nearest",), "nearest_mode": ("floor",)},
            otherwise=Takes(attributes={"mode": ("linear",)}),
        ),
        Slice=Takes(values={4: (1,)}),
    ),
    types=FLOATS,
    max_rank=4,
    fixed_sizes=True,
)
CASES = {
    "g (float[2] x) => (float[2] y) { y = Relu(x) }": "",
    "g (float[2] x) => (float[2] y) { y = Tanh(x) }": "no such operator",
    "g (float[B] x) => (float[B] y) { y = Relu(x) }": "sizes must be fixed",
    "g (float[1,1,1,1,2] x) => (float[1,1,1,1,2] y) { y = Relu(x) }": "5 dims",
    "g (int64[2] x) => (int64[2] y) { y = Relu(x) }": "no element type int64",
    "g (float[1,1,4] x, float[1,1,2] w) => (float[1,1,3] y) { y = Conv(x, w) }": "not a constant",
    "g (float[1,2,4,4] x) => (float[1,2,4,4] y)"
    " <float[2,1,1,1] w = {1, 2}> { y = Conv<group=2>(x, w) }": "group is 2, and it takes 1",
    "g (float[1,1,2,2] x, float[1,1,1,2] z) => (float[1,1,1,1] y) { y = GridSample(x, z) }": (
        "version 20 of the operator, and it takes at most 16"
    ),
    "g (float[1,1,4] x) => (float[1,1,4] y) <float[1,1,1] w = {1}> { y = Conv(x, w) }": "3 dims",
    "g (float[2,1,1] x) => (float[2,1,1] y) <float[2,1,1] w = {1, 2}> { y = Add(x, w) }": (
        "input 1 is a constant of 2 samples"
    ),
    "g (float[2,1,2] x) => (float[2,1,2] y) <float[1,1,2] w = {1, 2}> { y = Add(x, w) }": "",
    "g (float[2,1,2] x) => (float[2,1,2] y) <float[2] w = {1, 2}> { y = Add(x, w) }": "",
    "g (float[2] x) => (float[1] y) <int64[1] i = {1}> { y = Gather<axis=0>(x, i) }": (
        "the file names axis"
    ),
    "g (float[2] x) => (float[1] y) <int64[1] i = {1}> { y = Gather(x, i) }": "",
    "g (float[2] x, float[2] s) => (float[2] y) { y = LayerNormalization(x, s) }": (
        "input 2 is absent"
    ),
    "g (float[2] x) => (float[3] y) <int64[2] p = {0, 1}> { y = Pad(x, p) }": (
        "the file does not name mode"
    ),
    'g (float[2] x) => (float[3] y) <int64[2] p = {0, 1}> { y = Pad<mode="constant">(x, p) }': "",
    "g (float[4] x) => (float[2] y) <int64[1] a = {0}, int64[1] b = {4}, int64[1] t = {2}>"
    " { y = Slice(x, a, b, a, t) }": "input 4 has other elements than 1",
    "g (float[4] x) => (float[4] y) <int64[1] a = {0}, int64[1] b = {4}, int64[1] t = {1}>"
    " { y = Slice(x, a, b, a, t) }": "",
    'g (float[2] x) => (float[4] y) <float[1] s = {2}> { y = Resize<mode="linear">(x, "", s) }': "",
    "g (float[2] x) => (float[4] y) <float[1] s = {2}>"
    ' { y = Resize<mode="nearest", nearest_mode="ceil">(x, "", s) }': "ceil",
}


@pytest.mark.parametrize(("model", "why"), CASES.items())
def test_the_first_reason_is_told(model, why) -> None:
    found = unsupported_nodes(text.parse(model, 20), SMALL)
    assert why in found[0].why if why else not found
    assert all(each.remedy for each in found)


@pytest.mark.parametrize(
    ("operator", "words"),
    [
        ("LayerNormalization", "input 2 present"),
        ("Gather", "axis not named"),
        ("Pad", "mode named"),
        ("Slice", "elements 1 of input 4"),
        ("Add", "no constant of several samples"),
        ("Resize", "mode nearest; nearest_mode floor, or mode linear"),
    ],
)
def test_limits_in_words(operator, words) -> None:
    assert limits(SMALL.operators[operator]) == words


def test_nodes_of_one_operator_and_reason_are_told_together() -> None:
    model = "g (float[2] x) => (float[2] y) { a = Tanh(x) b = Tanh(a) y = Sin(b) }"
    found = unsupported_nodes(text.parse(model, 20), SMALL)
    assert [(each.operator, len(each.nodes)) for each in found] == [("Tanh", 2), ("Sin", 1)]
    assert " and 1 more" in str(found[0])


def test_the_remedy_of_open_sizes_names_the_dims() -> None:
    [found] = unsupported_nodes(
        text.parse("g (float[B] x) => (float[B] y) { y = Relu(x) }", 20), SMALL
    )
    assert "--dim B=1" in found.remedy


def test_open_sizes_are_told_once_for_all_operators() -> None:
    model = "g (float[B] x) => (float[B] y) { a = Relu(x) y = Sigmoid(a) }"
    assert [len(each.nodes) for each in unsupported_nodes(text.parse(model, 20), SMALL)] == [2]


def test_nodes_of_inner_graphs_are_judged() -> None:
    model = """g (float[2] x, bool c) => (float[2] y) {
        y = If<then_branch = t () => (float[2] a) { a = Tanh(x) },
               else_branch = e () => (float[2] b) { b = Relu(x) }>(c)
    }"""
    assert {each.operator for each in unsupported_nodes(text.parse(model, 20), SMALL)} == {
        "If",
        "Tanh",
    }


def test_an_opset_out_of_range_is_told_with_the_nearest_one() -> None:
    found = unsupported_nodes(
        text.parse("g (float[2] x) => (float[2] y) { y = Relu(x) }", 21), SMALL
    )
    assert [each.remedy for each in found] == ["--opset 20"]


def test_readers_are_those_that_take_every_node() -> None:
    plain = readers(text.parse("g (float[2] x) => (float[2] y) { y = Relu(x) }", 17))
    assert set(plain.taken_by) == set(consumers())
    odd = "g (float[N] x) => (int64[1,M] y) { y = NonZero(x) }"
    assert "coreml-ep" not in readers(text.parse(odd, 17)).taken_by
    assert "onnxruntime" in readers(text.parse(odd, 17)).taken_by


def test_defects_of_those_asked_for_are_told() -> None:
    model = text.parse("g (float[2] x) => (float[2] y) { y = Relu(x) }", 17)
    told = readers(model, "openvino,quantize").lines()
    assert told[0] == "supported by openvino, quantize"
    assert len(told) == 1 + len(consumers()["quantize"].defects)
    assert told[1].startswith("known defect of quantize: ")
    assert not readers(model).defects
