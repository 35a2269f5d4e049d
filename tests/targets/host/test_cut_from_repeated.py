"""No kernel writes in place into a broadcast view, or into a part of one."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.ir import text
from smelt.runtime.onnxruntime import OnnxRuntime
from smelt.targets.base import Plan
from smelt.targets.host import host
from smelt.targets.host.options import Options

N = "n = Neg(x) s = Constant<value_ints=[%s]>() e = Expand(n, s)"
FIRST = "b = Constant<value_ints=[0]>() t = Constant<value_ints=[%d]>()"
GRAPHS = {
    "another rank": f"(float[2,3] x) => (float[2,3] y) {{ {N % '1,1,1'} "
    "t = Constant<value_ints=[2,3]>() r = Reshape(e, t) y = Tanh(r) }",
    "one of equal rows": f"(float[1,3] x) => (float[3] y) {{ {N % '2,3'} {FIRST % 1} "
    "f = Slice(e, b, t) u = Constant<value_ints=[3]>() r = Reshape(f, u) y = Tanh(r) }",
    "a column of equal columns": f"(float[3,1] x) => (float[3,1] y) {{ {N % '3,2'} "
    f"{FIRST % 1} a = Constant<value_ints=[1]>() f = Slice(e, b, t, a) y = Tanh(f) }}",
    "as many elements of equal rows": f"(float[1,4] x) => (float[2,2] y) {{ {N % '2,4'} "
    f"{FIRST % 2} a = Constant<value_ints=[1]>() f = Slice(e, b, t, a) y = Tanh(f) }}",
    "nothing": f"(float[0,3] x) => (float[1,0,3] y) {{ {N % '1,1,3'} y = Tanh(e) }}",
}


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_as_onnx_runtime(graph: str) -> None:
    """Without passes, which would drop the Expand."""
    source = text.parse(f"g {graph}")
    plan = Plan(text.parse(f"g {graph}"), Options(engine="numpy"))
    host.schedule(plan)
    host.allocate(plan)
    shape = source.graph.inputs[0].shape.numpy()
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    (expected,), (found,) = OnnxRuntime(source)(x), host.emit(plan)(x)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
