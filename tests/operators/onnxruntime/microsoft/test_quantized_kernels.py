"""Operators on quantized numbers: kernel, reference, body, host and C give the same numbers."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from onnx import compose
from quantized_kernels import cases

import smelt
from smelt import operators
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.onnxruntime.microsoft.declared import DOMAIN
from smelt.runtime.onnxruntime import OnnxRuntime
from smelt.targets.ort.integer_products import are_exact

CASES = dict(cases())
HEAD = f'<ir_version: 10, opset_import: ["" : 21, "{DOMAIN}" : 1]> g '


def _model(name: str, opset: int = 21) -> ir.Model:
    model = text.parse(HEAD.replace("21", str(opset)) + CASES[name])
    ShapeInference(model).infer_model()
    return model


def _inputs(model: ir.Model) -> list[np.ndarray]:
    rng, arrays = np.random.default_rng(0), []
    for value in model.graph.inputs:
        assert value.dtype is not None
        assert value.shape is not None
        dtype, shape = value.dtype.numpy(), value.shape.numpy()
        if value.name == "i":
            array = rng.integers(-7, 7, shape)
        elif dtype.kind in "iu":
            array = rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape)
        else:
            array = rng.standard_normal(shape) if dtype.kind == "f" else rng.random(shape) < 0.5
        arrays.append(array.astype(dtype))
    return arrays


def _agree(got: object, want: np.ndarray) -> None:
    """Integers by bits; floats, which are summed in another order, nearly."""
    array = np.asarray(got)
    assert (array.dtype, array.shape) == (want.dtype, want.shape)
    if want.dtype.kind in "iu":
        np.testing.assert_array_equal(array, want)
    else:
        np.testing.assert_allclose(array, want, rtol=1e-4, atol=1e-3)


def _given_of(model: ir.Model, inputs: list[np.ndarray]) -> tuple[ir.Node, list[np.ndarray | None]]:
    """The node of the domain, and its operands."""
    held = dict(zip(model.graph.inputs, inputs, strict=True))
    for node in model.graph:
        for attribute in node.attributes.values() if node.op_type == "Constant" else ():
            number = attribute.name == "value_float"
            held[node.outputs[0]] = (
                np.asarray(attribute.as_float(), np.float32)
                if number
                else attribute.as_tensor().numpy()
            )
    (node,) = (node for node in model.graph if node.domain)
    return node, [None if value is None else held[value] for value in node.inputs]


@pytest.mark.parametrize("opset", [13, 21])
@pytest.mark.parametrize("name", CASES)
def test_the_reference_the_shape_and_the_body_are_what_the_kernel_computes(
    name: str, opset: int
) -> None:
    model = _model(name, opset)
    inputs = _inputs(model)
    want = np.asarray(OnnxRuntime(model)(*inputs)[0])
    node, arrays = _given_of(model, inputs)
    operator = operators.find(DOMAIN, node.op_type)
    assert operator is not None
    computed = np.asarray(operator.reference(arrays, operator.attributes_of(node))[0])
    assert node.outputs[0].shape == ir.Shape(want.shape)
    assert operators.expand(model) == 1
    _agree(OnnxRuntime(model)(*inputs)[0], want)
    if not _saturates(name):
        _agree(computed, want)


def _saturates(name: str) -> bool:
    """True if sums of the kernel ``name`` saturate in ONNX Runtime on this CPU."""
    return name.startswith("QAttention") and not are_exact()


@pytest.mark.parametrize("kind", ["uint8", pytest.param("int8", marks=pytest.mark.slow), "host"])
def test_targets_compute_what_the_kernels_compute(kind: str) -> None:
    """All in one model, so that a C compiler is called once; that of uint8 is of an old opset."""
    chosen = [name for name in CASES if not name.endswith("int8" if kind == "uint8" else " uint8")]
    whole, opset = None, 13 if kind == "uint8" else 21
    inputs: list[np.ndarray] = []
    expected: list[np.ndarray] = []
    for number, name in enumerate(chosen):
        model = _model(name, opset)
        inputs += _inputs(model)
        expected += [np.asarray(each) for each in OnnxRuntime(model)(*_inputs(model))]
        proto = compose.add_prefix(ir.to_proto(model), f"n{number}/")
        whole = proto if whole is None else compose.merge_models(whole, proto, io_map=[])
    assert whole is not None
    artifact = smelt.compile(whole, target="host" if kind == "host" else "c")
    for name, got, want in zip(chosen, artifact(*inputs), expected, strict=True):
        if _saturates(name):
            continue
        try:
            _agree(got, want)
        except AssertionError as error:
            raise AssertionError(name) from error


def test_weights_that_are_chosen_from_their_groups_are_spelled_out() -> None:
    """``g_idx`` says of each row which block it belongs to."""
    model = text.parse(
        f"{HEAD} (float[3,32] a, uint8[5,2,8] w, float[10] s, int32[32] g) => (float[3,5] y)"
        f"{{ y = {DOMAIN}.MatMulNBits<K=32, N=5, block_size=16>(a, w, s, , g) }}"
    )
    ShapeInference(model).infer_model()
    rng = np.random.default_rng(0)
    a, s = rng.standard_normal((3, 32)), rng.standard_normal(10)
    w, g = rng.integers(0, 256, (5, 2, 8)).astype(np.uint8), rng.permutation(32) // 16
    given = [a.astype(np.float32), w, s.astype(np.float32), g.astype(np.int32)]
    node = model.graph[0]
    operator = operators.find(DOMAIN, "MatMulNBits")
    assert operator is not None
    arrays = [*given[:3], None, given[3]]
    want = operator.reference(arrays, operator.attributes_of(node))[0]
    assert operators.expand(model) == 1
    _agree(OnnxRuntime(model)(*given)[0], np.asarray(want))
