"""``DynamicQuantizeLSTM``: reference, host and C are within the kernel's rounding of the state."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

import smelt
from smelt import operators
from smelt.ir import text
from smelt.operators.onnxruntime.microsoft.declared import DOMAIN
from smelt.runtime.onnxruntime import OnnxRuntime

S, N, D, H = 5, 3, 4, 8
HEAD = f'<ir_version: 10, opset_import: ["" : 21, "{DOMAIN}" : 1]> g '
DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
OTHER = 'activations=["HardSigmoid", "Softsign", "Relu"], activation_alpha=[0.3], clip=1.5'
LARGEST = 63
"""Two products with a byte fit in 16 bits, where ONNX Runtime sums on x86 without VNNI."""
ROUNDING = 0.02
"""Of a state within -1 and 1 that the kernel keeps in 255 steps while S steps are taken."""


def _graph(kind: str, direction: str, per_column: bool, rest: str) -> str:
    d, columns = DIRECTIONS[direction], f",{4 * H}" if per_column else ""
    ports = (
        f"float[{S},{N},{D}] x, {kind}[{d},{D},{4 * H}] w, {kind}[{d},{H},{4 * H}] r, "
        f"float[{d},{8 * H}] b, int32[{N}] l, float[{d},{N},{H}] h, float[{d},{N},{H}] c, "
        f"float[{d},{3 * H}] p, float[{d}{columns}] ws, {kind}[{d}{columns}] wz, "
        f"float[{d}{columns}] rs, {kind}[{d}{columns}] rz"
    )
    results = f"float[{S},{d},{N},{H}] y, float[{d},{N},{H}] yh, float[{d},{N},{H}] yc"
    called = f'{DOMAIN}.DynamicQuantizeLSTM<direction="{direction}", hidden_size={H}{rest}>'
    return f"{HEAD} ({ports}) => ({results}) {{ y, yh, yc = {called}(x, w, r, b, l, h, c, p, ws, wz, rs, rz) }}"


def _array(rng: np.random.Generator, value: ir.Value) -> np.ndarray:
    assert value.shape is not None
    assert value.dtype is not None
    shape, dtype = value.shape.numpy(), value.dtype.numpy()
    match value.name:
        case "l":
            return np.array([S, 1, S - 2], dtype)
        case "ws" | "rs":
            return rng.uniform(0.004, 0.012, shape).astype(dtype)
        case "wz" | "rz":
            return np.full(shape, 0 if dtype.kind == "i" else 128, dtype)
    if dtype.kind in "iu":
        middle = 0 if dtype.kind == "i" else 128
        return rng.integers(middle - LARGEST, middle + LARGEST + 1, shape).astype(dtype)
    return (rng.standard_normal(shape) / 2).astype(dtype)


def _case(kind: str, direction: str, per_column: bool, rest: str = "") -> tuple[ir.Model, list]:
    """The model, its weights constants as the kernel wants them, and what it is given."""
    model, given = text.parse(_graph(kind, direction, per_column, rest)), []
    rng = np.random.default_rng(4)
    for value in list(model.graph.inputs):
        array = _array(rng, value)
        if value.name in ("x", "b", "l", "h", "c", "p"):
            given.append(array)
        else:
            model.graph.inputs.remove(value)
            value.const_value = ir.tensor(array, name=value.name)
            model.graph.register_initializer(value)
    return model, given


def _agree(found: object, wanted: object) -> None:
    for got, want in zip(found, wanted, strict=True):  # type: ignore[call-overload]
        assert np.shape(got) == np.shape(want)
        np.testing.assert_allclose(got, want, atol=ROUNDING)


@pytest.mark.parametrize("per_column", [False, True])
@pytest.mark.parametrize("kind", ["uint8", "int8"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_the_reference_and_host_are_near_the_kernel(
    direction: str, kind: str, per_column: bool
) -> None:
    model, given = _case(kind, direction, per_column)
    want = OnnxRuntime(model)(*given)
    (node,) = model.graph
    operator = operators.find(DOMAIN, node.op_type)
    assert operator is not None
    held = dict(zip(model.graph.inputs, given, strict=True))
    held |= {v: v.const_value.numpy() for v in model.graph.initializers.values() if v.const_value}
    arrays = [held[value] for value in node.inputs if value is not None]
    reference = operator.reference(arrays, operator.attributes_of(node))
    _agree(reference, want)
    results = smelt.compile(model, target="host")(*given)
    for got, expected in zip(results, reference, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_c_takes_other_functions_and_a_clip() -> None:
    model, given = _case("int8", "forward", True, f", {OTHER}")
    want = OnnxRuntime(model)(*given)
    _agree(smelt.compile(model, target="c")(*given), want)


def test_weights_alone_and_the_last_state_alone() -> None:
    rng = np.random.default_rng(5)
    model = text.parse(
        f"{HEAD} (float[T,{N},{D}] x) => (float[1,{N},{H}] yh) "
        f"<float[1] s = {{0.008}}, int8[1] z = {{0}}, int8[1,{D},{4 * H}] w, int8[1,{H},{4 * H}] r> "
        f"{{ , yh = {DOMAIN}.DynamicQuantizeLSTM<hidden_size={H}>(x, w, r, , , , , , s, z, s, z) }}"
    )
    for value in model.graph[0].inputs[1:3]:
        assert value is not None
        shape = (1, D if value.name == "w" else H, 4 * H)
        tensor = ir.tensor(rng.integers(-LARGEST, LARGEST + 1, shape, np.int8), name=value.name)
        value.const_value, value.shape, value.dtype = tensor, tensor.shape, tensor.dtype
        model.graph.register_initializer(value)
    x = rng.standard_normal((S, N, D)).astype(np.float32)
    _agree(smelt.compile(model, target="host")(x), OnnxRuntime(model)(x))
