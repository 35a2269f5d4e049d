"""Digests are equal exactly for graphs that compute the same in the same way."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from smelt.ir.fingerprint import fingerprint
from smelt.ir.text import parse

BODY = "g (float[B,4] x) => (float[B,4] y) { t = Relu(x) y = Add<a=1.5>(t, x) }"
BRANCH = """g (bool c, float[4] x) => (float[4] y) { y = If (c) <
then_branch = t () => (float[4] u) { u = Neg(x) },
else_branch = f () => (float[4] v) { v = Abs(x) }> }"""


def digest(text: str) -> bytes:
    return fingerprint(parse(text).graph)


def test_names_do_not_count():
    renamed = "other (float[B,4] in) => (float[B,4] out) { q = Relu(in) out = Add<a=1.5>(q, in) }"
    assert digest(BODY) == digest(renamed)
    assert digest(BRANCH) == digest(
        BRANCH.replace("u", "w").replace("v =", "z =").replace("[4] v", "[4] z")
    )


@pytest.mark.parametrize(
    "other",
    [
        BODY.replace("Relu", "Neg"),
        BODY.replace("(t, x)", "(x, t)"),
        BODY.replace("1.5", "-1.5"),
        BODY.replace("<a=1.5>", ""),
        BODY.replace("a=1.5", "b=1.5"),
        BODY.replace("float[B,4] x", "float[C,4] x"),
        BODY.replace("float[B,4]", "float16[B,4]"),
        BODY.replace("Add<a=1.5>(t, x)", "Add<a=1.5>(t, t)"),
        BODY.replace("Relu(x)", "f.Relu(x)"),
    ],
)
def test_operators_wiring_attributes_and_types_count(other):
    assert digest(BODY) != digest(other)


def test_subgraphs_count():
    assert digest(BRANCH) != digest(BRANCH.replace("Abs", "Neg"))


@pytest.mark.parametrize(
    "pair",
    [
        (np.float32(0.0), np.float32(-0.0)),
        (np.zeros(2, np.float32), np.zeros((2, 1), np.float32)),
        (np.zeros(1, np.int32), np.zeros(1, np.float32)),
    ],
)
def test_constants_count_by_their_bits_shape_and_type(pair):
    def constant(array):
        node = ir.Node("", "Constant", [], [ir.AttrTensor("value", ir.Tensor(np.asarray(array)))])
        return ir.Graph([], node.outputs, nodes=[node])

    first, second = (fingerprint(constant(array)) for array in pair)
    assert first != second
    assert first == fingerprint(constant(pair[0]))
    nan = np.float32(np.nan)
    assert fingerprint(constant(nan)) == fingerprint(constant(nan.copy()))
