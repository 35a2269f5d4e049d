"""What a caller gives stays as it is, also where passes rename what was read from it."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest

import smelt

BRANCHES = """<ir_version: 8, opset_import: ["" : 17]>
g (bool c, float[2] x) => (float[2] y) <float[2] w = {1, 2}> {
    t = Constant<value = bool {1}>()
    h = Add(x, w)
    y = If(t) <then_branch = a () => (float[2] p) <float[2] k = {3, 4}> {
        q = If(c) <then_branch = b () => (float[2] r) <float[2] j = {5, 6}> { r = Mul(h, j) },
                   else_branch = d () => (float[2] s) <float[2] m = {7, 8}> { s = Sub(h, m) }>
        p = Add(q, k)
    }, else_branch = e () => (float[2] z) <float[2] n = {3, 4}> { z = Add(h, n) }>
}"""
LOOP = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x, bool c) => (float[2] y) <int64 n = {3}> {
    y = Loop(n, c, x) <body = b (int64 i, bool go, float[2] u) => (bool on, float[2] v)
        <float[2] k = {3, 4}, float[2] j = {3, 4}> {
        on = Identity(go)
        a = Add(u, k)
        v = Mul(a, j)
    }>
}"""


@pytest.mark.parametrize("text", [BRANCHES, LOOP], ids=["branches", "loop"])
@pytest.mark.parametrize("target", ["onnx", "host", "c", "ort"])
def test_a_compile_leaves_what_it_was_given(text: str, target: str) -> None:
    model = onnx.parser.parse_model(text)
    before = model.SerializeToString()
    smelt.compile(model, target=target)
    assert model.SerializeToString() == before


@pytest.mark.parametrize("text", [BRANCHES, LOOP], ids=["branches", "loop"])
def test_a_model_in_memory_leaves_the_message_behind_it(text: str) -> None:
    message = onnx.parser.parse_model(text)
    before = message.SerializeToString()
    model = ir.from_proto(message)
    same = ir.to_proto(ir.from_proto(onnx.parser.parse_model(text)))
    optimized = smelt.optimize(model)
    assert message.SerializeToString() == before
    assert ir.to_proto(model) == same
    onnx.checker.check_model(ir.to_proto(optimized), full_check=True)
