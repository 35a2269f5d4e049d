"""float16 and bfloat16 are computed in float32; interfaces keep their types."""

from __future__ import annotations

from collections import defaultdict

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from onnxruntime.capi import onnxruntime_pybind11_state as runtime

import smelt
from smelt.compiler import optimize_model
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.ir.symbolic_dims.invented_dims import every_value
from smelt.passes.precision.widen_half import MOVES
from smelt.runtime.inputs import random_inputs
from smelt.runtime.onnxruntime import OnnxRuntime
from smelt.runtime.reference import Reference

BF16, F16, F32 = ir.DataType.BFLOAT16, ir.DataType.FLOAT16, ir.DataType.FLOAT
G = "g (bfloat16[2,4] x) => (bfloat16[2,4] y)"
CASES = {
    "a chain": f"{G} {{ a = Sigmoid(x) y = Mul(a, x) }}",
    "a small constant": f"{G} {{ c = Constant<value = float[4] {{1,2,3,4}}>() d = Cast<to = 16>(c) y = Mul(x, d) }}",
    "a cast between": f"{G} {{ a = Cast<to = 1>(x) b = Exp(a) c = Cast<to = 16>(b) y = Neg(c) }}",
    "an output that is read": "g (bfloat16[4] x) => (bfloat16[4] a, bfloat16[4] y) { a = Exp(x) y = Neg(a) }",
    "an input that is returned": "g (bfloat16[4] x) => (bfloat16[4] x, bfloat16[4] y) { y = Exp(x) }",
    "integers and booleans": "g (bfloat16[4] x, int64[2] i) => (bfloat16[2] y, bool[4] z) { e = Exp(x) y = Gather(e, i) z = Less(x, e) }",
    "a loop": """g (bfloat16[4] x) => (bfloat16[4] y) {
        n = Constant<value_int = 3>() t = Constant<value = bool {1}>()
        y = Loop(n, t, x) <body = b (int64 i, bool c, bfloat16[4] s) => (bool d, bfloat16[4] r) {
            d = Identity(c) h = Sigmoid(s) r = Add(h, x) }>
    }""",
    "a branch": """g (bfloat16[4] x, bool c) => (bfloat16[4] y) {
        y = If(c) <then_branch = a () => (bfloat16[4] p) { p = Exp(x) },
                   else_branch = b () => (bfloat16[4] q) { q = Neg(x) }>
    }""",
    "empty": "g (bfloat16[0,4] x) => (bfloat16[0,4] y) { y = Exp(x) }",
}


@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
@pytest.mark.parametrize("graph", CASES.values(), ids=CASES.keys())
def test_it_runs_and_keeps_the_interface(graph: str, kind: str) -> None:
    if kind == "float16":
        graph = graph.replace("bfloat16", "float16").replace("to = 16", "to = 10")
    source = text.parse(graph)
    made = source.clone()
    optimize_model(made, pipeline="widen-half,cleanup")
    for ports in ("inputs", "outputs"):
        kept = [(v.name, v.dtype, v.shape) for v in getattr(source.graph, ports)]
        assert [(v.name, v.dtype, v.shape) for v in getattr(made.graph, ports)] == kept
    edges = {*made.graph.inputs, *made.graph.outputs}
    assert not any(v.dtype in (BF16, F16) for v in every_value(made) if v not in edges)
    given = random_inputs(source, {})
    expected, results = Reference(source)(*given), OnnxRuntime(made)(*given)
    for value, wanted in zip(results, expected, strict=True):
        assert value.dtype == wanted.dtype  # type: ignore[union-attr]
        both = [np.asarray(each).astype(np.float32) for each in (value, wanted)]
        np.testing.assert_allclose(*both, rtol=0.05, atol=0.02)


def test_large_weights_stay_as_they_are_stored() -> None:
    model = text.parse(
        "g (float16[2,8] x, float16[8,8] w) => (float16[2,8] y) { y = MatMul(x, w) }"
    )
    weight = model.graph.inputs.pop()
    weight.const_value = ir.Tensor(np.eye(8, dtype=np.float16), name="w")
    model.graph.register_initializer(weight)
    optimize_model(model, pipeline="widen-half,cleanup")
    assert model.graph.initializers["w"].dtype == F16
    assert [node.op_type for node in model.graph].count("Cast") == 3


KEPT = {
    "no numbers of the kind": "g (float[4] x) => (float[4] y) { y = Exp(x) }",
    "what only moves": "g (bfloat16[4] x) => (bfloat16[2,2] y) { s = Constant<value_ints = [2,2]>() y = Reshape(x, s) }",
    "an operator nobody declares": "g (bfloat16[4] x) => (bfloat16[4] y) { e = Exp(x) y = nobody.Knows(e) }",
    "the other type alone": "g (float16[4] x) => (float16[4] y) { y = Exp(x) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_other_models_stay(graph: str) -> None:
    model = text.parse(graph)
    optimize_model(model, pipeline="widen-half{types=bfloat16}")
    assert text.canonical(model) == text.canonical(text.parse(graph))


def test_another_type_is_refused() -> None:
    with pytest.raises(SmeltError) as caught:
        optimize_model(text.parse(KEPT["what only moves"]), pipeline="widen-half{types=float64}")
    assert caught.value.code == "E603"


def test_the_target_runs_what_the_runtime_has_no_kernel_for() -> None:
    model = text.parse(CASES["a chain"])
    artifact = smelt.compile(model, target="ort")
    x = np.arange(8).reshape(2, 4).astype(ml_dtypes.bfloat16)
    (result,) = artifact(x)
    wide = x.astype(np.float32)
    assert result.dtype == x.dtype  # type: ignore[union-attr]
    expected = wide / (1 + np.exp(-wide))
    np.testing.assert_allclose(np.asarray(result).astype(np.float32), expected, rtol=0.01)


def test_the_runtime_moves_numbers_of_any_kind() -> None:
    types = defaultdict(set)
    for kernel in runtime.get_all_opkernel_def():
        if kernel.provider == "CPUExecutionProvider" and not kernel.domain:
            for names in kernel.type_constraints.values():
                types[kernel.op_name] |= set(names)
    typed = MOVES - {"Constant", "Size"}
    assert all({"tensor(bfloat16)", "tensor(float16)"} <= types[name] for name in typed)
