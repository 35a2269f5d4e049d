"""Before opset 13 a Resize that is given sizes has empty scales, which are absent from then on."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import smelt
from smelt.frontends.onnx import to_proto
from smelt.ir import text
from smelt.ir.opsets.raise_opset import raise_opset
from smelt.runtime.onnxruntime import OnnxRuntime

IN_A_BODY = text.parse(
    "g (float[1,1,N,4] x) => (float[T,1,1,A,B] y) <float[0] none = {}, int64 m = {2}, bool c = {1}, "
    "int64[4] sizes = {1,1,6,8}> { y = Loop(m, c) <body = b (int64 i, bool k) => "
    "(bool o, float[1,1,A,B] r) { o = Identity(k) r = Resize(x, none, none, sizes) }> }",
    11,
)
BY_SCALES = text.parse(
    "g (float[1,1,N,4] x) => (float[1,1,A,B] y) <float[0] none = {}, float[4] scales = {1,1,2,2}> "
    "{ y = Resize(x, none, scales) }",
    11,
)


@pytest.mark.parametrize("source", [IN_A_BODY, BY_SCALES], ids=["sizes in a body", "scales"])
def test_the_checker_takes_it(source: ir.Model) -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 3, 4)
    (expected,) = OnnxRuntime(source)(x)
    raised = source.clone()
    raise_opset(raised, 15)
    for model in (raised, smelt.optimize(source)):
        onnx.checker.check_model(to_proto(model), full_check=True)
        np.testing.assert_array_equal(OnnxRuntime(model)(x)[0], expected)


def test_empty_scales_become_absent() -> None:
    raised = BY_SCALES.clone()
    raise_opset(raised, 13)
    (resize,) = raised.graph
    assert [value.name if value else None for value in resize.inputs] == ["x", None, "scales"]
