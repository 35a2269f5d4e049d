"""The element types that ONNX Runtime has no kernels for, and that models of bfloat16 open."""

from __future__ import annotations

import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import onnx_ir as ir
import onnxruntime as ort
import pytest
from installed import ONNXRUNTIME
from onnxruntime.capi import onnxruntime_pybind11_state as kernels

import smelt
from smelt.ir import opset, text
from smelt.operators.onnxruntime.runtime_gaps import typed_input
from smelt.operators.onnxruntime.without_kernel import (
    WITH_BFLOAT16,
    WITHOUT,
    lacks_bfloat16,
    without_kernel,
)
from smelt.runtime.onnxruntime import OnnxRuntime

OPSET = 23
RNG = np.random.default_rng(0)


def types_of(op_type: str, variables: set[str] | None = None) -> set[str]:
    """The element types of the runtime's kernels for an operator, as tensor(...)."""
    found: set[str] = set()
    for kernel in kernels.get_all_opkernel_def():
        named = (kernel.domain, kernel.op_name, kernel.provider)
        if named == ("", op_type, "CPUExecutionProvider") and kernel.version_range[1] >= OPSET:
            for name, types in kernel.type_constraints.items():
                found |= set(types) if variables is None or name in variables else set()
    return found


LATER = {(1, 31): set(), (1, 32): {"Celu", "Einsum", "OneHot", "Pad", "Unique"}}
"""Kernels of bfloat16 that a release has and the table lacks: the table is that of the oldest
release, because files must load there."""


@pytest.mark.skipif(ONNXRUNTIME not in LATER, reason="the table is that of 1.31 and 1.32")
def test_the_runtime_has_these_kernels_of_bfloat16_and_no_others() -> None:
    own = {name for name in opset.operators() if "tensor(bfloat16)" in types_of(name)}
    own -= {"LayerNormalization"}  # it mixes types
    own -= {"Scatter", "DynamicSlice"}
    assert own | {"Constant"} == WITH_BFLOAT16 | LATER[ONNXRUNTIME]


@pytest.mark.parametrize(("domain", "lacks"), [("", False), ("own", True), ("smelt", True)])
def test_only_operators_of_onnx_have_kernels_of_bfloat16(domain: str, lacks: bool) -> None:
    assert lacks_bfloat16(ir.node("Cast", [], domain=domain)) == lacks


@pytest.mark.parametrize("op_type", WITHOUT)
def test_the_runtime_lacks_what_the_table_says(op_type: str) -> None:
    schema = opset.schema(op_type, OPSET)
    assert schema is not None
    formal = schema.inputs[typed_input(op_type)]
    lacking = {f"tensor({dtype.name.lower()})" for dtype in WITHOUT[op_type]}
    assert lacking <= set(formal.types)
    assert not lacking & types_of(op_type, {formal.type_str})


KINDS = {
    "elementwise": "y = Add(x, x)",
    "a function": "y = Gelu(x)",
    "a comparison": "c = Less(x, w) y = Where(c, x, w)",
    "a reduction": "y = ReduceSum<keepdims=1>(x)",
    "a softmax": "y = Softmax(x)",
    "a product": "y = MatMul(x, w)",
    "a norm": "y = LayerNormalization(x, x)",
    "a norm by its root mean square": "y = RMSNormalization(x, x)",
    "a running sum": "y = CumSum(x, i)",
    "clipped": "y = Clip(x)",
    "repeated": "y = Tile(x, r)",
    "expanded": "y = Expand(x, r)",
    "padded": "y = Pad(x, p)",
    "a triangle": "y = Trilu(x)",
    "scattered": 'y = ScatterElements<reduction="add">(x, k, x)',
    "the greatest": "y = Max(x, w)",
    "a size": "n = Size(x) c = CastLike(n, x) y = Mul(x, c)",
    "in a branch": "y = If(b) <then_branch = t () => (bfloat16[4,4] u) { u = Exp(x) }, "
    "else_branch = f () => (bfloat16[4,4] v) { v = Identity(w) }>",
    "in a loop": "y = Loop(o0, b, x) <body = l (int64 q, bool c, bfloat16[4,4] s) => "
    "(bool d, bfloat16[4,4] t) { d = Identity(c) t = Tanh(s) }>",
    "moved": "y = Transpose(x)",
}
GIVEN = (
    "bfloat16[4,4] w = {1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7}, int64 i = {0}, int64[2] r = {1,1}, "
    "int64[4] p = {0,1,0,0}, int64[4,4] k = {0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3}, "
    "int64 o0 = {2}, bool b = {1}"
)


def graph(body: str) -> ir.Model:
    return text.parse(f"g (bfloat16[4,4] x) => (bfloat16[M,N] y) <{GIVEN}> {{ {body} }}", OPSET)


@pytest.mark.parametrize("name", KINDS)
def test_a_written_model_of_bfloat16_opens(name: str, tmp_path: Path) -> None:
    source = ir.to_proto(graph(KINDS[name]))
    done = smelt.optimize(source)
    session = ort.InferenceSession(done.SerializeToString(), providers=["CPUExecutionProvider"])
    assert [value.type for value in session.get_outputs()] == ["tensor(bfloat16)"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        smelt.save(smelt.load(done), tmp_path / "m.onnx")


def test_it_is_kept_on_request_and_told(tmp_path: Path) -> None:
    kept = smelt.optimize(graph("a = Add(x, x) y = Softmax(a)"), keep_bfloat16=True)
    assert [dtype.name for _, dtype in without_kernel(kept)] == ["BFLOAT16"] * 2
    with pytest.warns(UserWarning, match=r"no kernel for 1 Add of bfloat16, 1 Softmax .*optimize"):
        smelt.save(kept, tmp_path / "m.onnx")


def test_other_types_are_told(tmp_path: Path) -> None:
    nodes = "{ y = Einsum<equation='ij->ji'>(x) }".replace("'", '"')
    model = text.parse(f"g (int16[2,3] x) => (int16[3,2] y) {nodes}", 18)
    with pytest.warns(UserWarning, match=r"1 Einsum of int16.*host"):
        smelt.save(model, tmp_path / "m.onnx")


def test_operators_with_kernels_stay_in_bfloat16() -> None:
    model = smelt.optimize(graph("a = Concat<axis=0>(x, w) y = Transpose(a)"))
    assert all(node.op_type != "Cast" for node in model.graph)


def weight(*shape: int) -> jax.Array:
    return jnp.asarray(RNG.standard_normal(shape) * 0.3, jnp.bfloat16)


W, B, K = weight(8, 8), weight(8), weight(3, 3, 4, 8)


def norm(x):
    centered = x - x.mean(-1, keepdims=True)
    return centered * jax.lax.rsqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * B


def attention(x):
    heads = (norm(x) @ W).reshape(1, -1, 2, 4)
    return x + jax.nn.dot_product_attention(heads, heads, heads).reshape(-1, 8) @ W


def convolution(x):
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.nn.relu(jax.lax.conv_general_dilated(x, K, (1, 1), "SAME", dimension_numbers=layout))


FUNCTIONS = {
    "an MLP": (lambda x: jax.nn.gelu(x @ W + B) @ W, (6, 8)),
    "a norm": (norm, (6, 8)),
    "an attention block": (attention, (6, 8)),
    "a convolution": (convolution, (1, 5, 5, 4)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_jax_convert_open_and_agree(name: str) -> None:
    function, shape = FUNCTIONS[name]
    x = RNG.standard_normal(shape).astype(ml_dtypes.bfloat16)
    artifact = smelt.compile(function, f"bf16[{','.join(map(str, shape))}]", target="onnx")
    assert not list(without_kernel(artifact.model))
    (y,) = OnnxRuntime(artifact.model)(x)
    assert y.dtype == ml_dtypes.bfloat16
    expected = np.asarray(function(x), np.float32)
    np.testing.assert_allclose(y.astype(np.float32), expected, rtol=0.02, atol=0.03)
