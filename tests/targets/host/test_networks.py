"""Whole networks on the host agree with ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import smelt
from smelt.ir.defaults import default_of

MLP = """mlp (float[B,8] x, float[8,16] w1, float[16] b1, float[16,4] w2, float[4] b2) => (float[B,4] y) {
    h = MatMul(x, w1)
    a = Add(h, b1)
    r = Relu(a)
    z = Gemm(r, w2, b2)
    y = Softmax<axis=-1>(z)
}"""

CNN = """cnn (float[B,3,12,12] x, float[8,3,3,3] w1, float[8] b1, float[8] s, float[8] t, float[8] m, float[8] v,
             float[8,4,3,3] w2, float[5,8,5,5] w3) => (float[B,5] y) {
    c = Conv<pads=[1,1,1,1]>(x, w1, b1)
    n = BatchNormalization(c, s, t, m, v)
    r = Relu(n)
    p = MaxPool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1>(r)
    d = Conv<group=2, auto_pad="SAME_UPPER", strides=[1,1]>(p, w2)
    e = Add(d, p)
    a = AveragePool<kernel_shape=[2,2], count_include_pad=1, pads=[1,0,0,1]>(e)
    f = Conv<strides=[2,2], dilations=[1,1]>(a, w3)
    g = GlobalAveragePool(f)
    y = Flatten(g)
}"""

ATTENTION = """attention (float[B,S,24] x, float[24,72] w, float[72] b, float[24,24] o, float[24] gain, float[24] shift) => (float[B,S,24] y) {
    n = LayerNormalization<axis=-1>(x, gain, shift)
    p = MatMul(n, w)
    qkv = Add(p, b)
    q0, k0, v0 = Split<axis=-1, num_outputs=3>(qkv)
    heads = Constant<value_ints = [0, 0, 4, 6]>()
    q1 = Reshape(q0, heads)
    k1 = Reshape(k0, heads)
    v1 = Reshape(v0, heads)
    q = Transpose<perm=[0,2,1,3]>(q1)
    k = Transpose<perm=[0,2,3,1]>(k1)
    v = Transpose<perm=[0,2,1,3]>(v1)
    s = MatMul(q, k)
    scale = Constant<value_float = 0.408248>()
    t = Mul(s, scale)
    a = Softmax<axis=-1>(t)
    c = MatMul(a, v)
    r = Transpose<perm=[0,2,1,3]>(c)
    whole = Constant<value_ints = [0, 0, 24]>()
    m = Reshape(r, whole)
    l = MatMul(m, o)
    g = Gelu(l)
    y = Add(x, g)
}"""


def normal(*shape: int) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    return (rng.standard_normal(shape) * 0.5).astype(np.float32)


@pytest.mark.parametrize("batch", [1, 3])
def test_mlp(agree, batch: int) -> None:
    agree(MLP, normal(batch, 8), normal(8, 16), normal(16), normal(16, 4), normal(4))


@pytest.mark.parametrize("batch", [1, 3])
def test_cnn(agree, batch: int) -> None:
    weights = [normal(8, 3, 3, 3), *(normal(8) for _ in range(3)), normal(8), np.abs(normal(8)) + 1]
    agree(CNN, normal(batch, 3, 12, 12), *weights, normal(8, 4, 3, 3), normal(5, 8, 5, 5))


@pytest.mark.parametrize(("batch", "length"), [(1, 1), (2, 7)])
def test_attention(agree, batch: int, length: int) -> None:
    weights = [normal(24, 72), normal(72), normal(24, 24), normal(24), normal(24)]
    agree(ATTENTION, normal(batch, length, 24), *weights)


LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"


def with_random_weights(model: ir.Model) -> ir.Model:
    """Fill in random weights, scaled by fan-in; the files hold architectures only."""
    graph = model.graph
    defaults = {value: default_of(value) for value in graph.inputs}
    for value, default in defaults.items():
        if default is not None:
            graph.inputs.remove(value)
            value.meta.pop("smelt.default", None)
            value.const_value = default
            graph.register_initializer(value)
    for node in list(graph):
        if node.op_type == "ConstantOfShape":
            (old,), sizes = node.outputs, node.inputs[0].const_value.numpy()
            fan_in = max(1, int(np.prod(sizes[1:])))
            array = np.abs(normal(*sizes)) if len(sizes) == 1 else normal(*sizes) / np.sqrt(fan_in)
            new = ir.Value(
                name=f"{old.name}_random", const_value=ir.tensor(array.astype(np.float32))
            )
            new.shape, new.dtype = ir.Shape(sizes.tolist()), ir.DataType.FLOAT
            graph.register_initializer(new)
            old.replace_all_uses_with(new)
            graph.remove(node, safe=True)
    return model


@pytest.mark.parametrize(
    "name", ["squeezenet", "shufflenet", pytest.param("densenet121", marks=pytest.mark.slow)]
)
def test_real_architectures(agree, name: str) -> None:
    model = with_random_weights(smelt.load(LIGHT / f"light_{name}.onnx"))
    (image,) = model.graph.inputs
    assert image.shape is not None
    agree(model, normal(*image.shape.numpy()), rtol=1e-3)
