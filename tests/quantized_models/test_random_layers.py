"""Random quantized convolutions and products on host are within a step of ONNX Runtime on floats."""

from __future__ import annotations

import numpy as np
import onnxruntime
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, parser

import smelt

KINDS = st.sampled_from(["uint8", "int8"])
HEAD = '<ir_version: 10, opset_import: ["" : 21]> g '


def _floats(model: ModelProto, x: np.ndarray) -> np.ndarray:
    """What ONNX Runtime gives without its own integer kernels, which differ by processor."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return np.asarray(session.run(None, {"x": x})[0])


def _numbers(array: np.ndarray) -> str:
    return "{" + ", ".join(map(str, array.ravel().tolist())) + "}"


def _codes(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    bounds = np.iinfo(kind)
    return rng.integers(bounds.min, bounds.max + 1, shape).astype(kind)


def _zero(draw: st.DrawFn, kind: str) -> int:
    """Most often one of the ends, where a kernel may take one for the other."""
    bounds = np.iinfo(kind)
    ends = st.sampled_from([bounds.min, 0, bounds.max])
    return draw(ends | st.integers(bounds.min, bounds.max))


@st.composite
def layers(draw: st.DrawFn) -> tuple[str, str, tuple[int, ...], np.random.Generator]:
    """The graph, the type and shape of x, and where its numbers come from."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kind, weights, result = draw(KINDS), draw(KINDS), draw(KINDS)
    groups, each, filters = (draw(st.integers(1, 4)) for _ in range(3))
    window = draw(st.sampled_from([1, 3]))
    conv = draw(st.booleans())
    rows = filters * groups
    shape = (2, each * groups, *(draw(st.integers(window, 9)) for _ in range(2)))
    w = _codes(rng, weights, (rows, each, window, window))
    called = f"Conv<group={groups}, pads=[{window // 2}, 0, 0, {window // 2}]>(a, b)"
    if not conv:
        shape, w = (shape[2], each * groups), _codes(rng, weights, (rows, each * groups))
        called = "Gemm<transB=1>(a, b)"
    scales = rng.uniform(0.004, 0.02, rows).astype(np.float32)
    zeros = np.array([_zero(draw, weights) for _ in range(rows)])
    dims, shown = ",".join(map(str, shape)), ",".join(map(str, w.shape))
    output = ",".join("abcd"[: len(shape)])
    text = (
        f"{HEAD} ({kind}[{dims}] x) => ({result}[{output}] y) <float s = {{0.02}}, "
        f"{kind} z = {{{_zero(draw, kind)}}}, {weights}[{shown}] w = {_numbers(w)}, "
        f"float[{rows}] ws = {_numbers(scales)}, {weights}[{rows}] wz = {_numbers(zeros)}, "
        f"float t = {{0.17}}, {result} u = {{{_zero(draw, result)}}}> {{ "
        "a = DequantizeLinear(x, s, z) b = DequantizeLinear<axis=0>(w, ws, wz) "
        f"c = {called} y = QuantizeLinear(c, t, u) }}"
    )
    return text, kind, shape, rng


@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(layers())
def test_layers(layer: tuple[str, str, tuple[int, ...], np.random.Generator]) -> None:
    text, kind, shape, rng = layer
    model = parser.parse_model(text)
    x = _codes(rng, kind, shape)
    want = _floats(model, x)
    got = np.asarray(smelt.compile(model, target="host")(x)[0])
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    assert np.abs(got.astype(int) - want.astype(int)).max() <= 1
