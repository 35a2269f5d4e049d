"""A table that a Gather and a product read is stored once."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import smelt
from smelt.ir.build import Builder
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.onnxruntime.four_bits import INT4, NORMAL_FLOAT4, Grid
from smelt.precision.int8.linear import weight_blocks
from smelt.precision.int8.tables import bytes_of_codes, two_codes_a_byte
from smelt.runtime.onnxruntime import OnnxRuntime

ROWS, LENGTH = 600, 64

PRODUCTS = {
    "MatMul of a Transpose": (3, "t = Transpose<perm=[1,0]>(w) y = MatMul(h, t)"),
    "Gemm": (2, "y = Gemm<transB=1>(h, w)"),
}


def tied(rank: int, product: str) -> Any:
    dims = "B,4" if rank == 3 else "B"
    model = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> f (int64[{dims}] x) => (float[{dims},{ROWS}] y)'
        f"{{ e = Gather(w, x) h = Tanh(e) {product} }}"
    )
    array = np.random.default_rng(1).normal(0, 0.3, (ROWS, LENGTH)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(array, "w"))
    return model


def samples(rank: int) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(2)
    return [{"x": rng.integers(0, ROWS, (2, 4) if rank == 3 else (4,))} for _ in range(4)]


@pytest.mark.parametrize(
    ("weights", "activations", "per_row"),
    [
        ("int4", "float", LENGTH // 2 + 4 * LENGTH // 32),
        ("nf4", "float", LENGTH // 2 + 4 * LENGTH // 32),
        ("int8", "float", LENGTH + 8),  # the Gather reads scales as a column
        ("int8", "dynamic", LENGTH + 8),
        ("int8", "static", LENGTH + 8),
    ],
)
@pytest.mark.parametrize("kind", PRODUCTS)
def test_the_codes_are_stored_once(kind: str, weights: str, activations: Any, per_row: int) -> None:
    rank, product = PRODUCTS[kind]
    data = samples(rank)
    result = smelt.quantize(
        tied(rank, product), data, within="30%", weights=weights, activations=activations
    )
    assert sum(len(each.nodes) for each in result.chosen) == 2
    proto = smelt.to_proto(result.model)
    onnx.checker.check_model(proto, full_check=True)
    stored = sum(len(tensor.raw_data) for tensor in proto.graph.initializer)
    assert stored <= ROWS * per_row + 400
    expected = np.asarray(OnnxRuntime(smelt.load(proto), optimized=True)(data[0]["x"])[0])
    again = np.asarray(smelt.compile(smelt.load(proto), target="host")(data[0]["x"]))
    assert np.abs(again - expected).max() < 0.01 * np.abs(expected).max()


@pytest.mark.parametrize("bias", [0.3, 1e9])
def test_a_bias_shares_the_codes_if_it_fits_their_scales(bias: float) -> None:
    proto = tied(*PRODUCTS["Gemm"])
    proto.graph.node[2].input.append("c")
    array = np.full(ROWS, bias, np.float32)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(array, "c"))
    data = samples(2)
    result = smelt.quantize(proto, data, within="30%", activations="static")
    assert sorted(result.chosen.values()) == ["static", "weights"]
    weights = smelt.to_proto(result.model).graph.initializer
    tables = [tensor for tensor in weights if list(tensor.dims) == [ROWS, LENGTH]]
    assert len(tables) == (1 if bias < 1 else 2)
    (expected,) = OnnxRuntime(smelt.load(proto))(data[0]["x"])
    (found,) = OnnxRuntime(result.model, optimized=True)(data[0]["x"])
    error = np.linalg.norm(np.asarray(found) - np.asarray(expected))
    assert error < (0.03 if bias < 1 else 1e-6) * np.linalg.norm(np.asarray(expected))


def test_a_product_that_sums_over_the_rows_of_the_table_has_codes_of_its_own() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> f (int64[B] x, float[B,64] p) => '
        "(float[B,64] y, float[B,64] e) { e = Gather(w, x) y = MatMul(p, w) }"
    )
    array = np.random.default_rng(1).normal(0, 0.3, (64, 64)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(array, "w"))
    rng = np.random.default_rng(2)
    data = [
        {"x": rng.integers(0, 64, 2), "p": rng.normal(size=(2, 64)).astype(np.float32)}
        for _ in range(4)
    ]
    result = smelt.quantize(model, data, within="30%", weights="int4")
    types = [t.data_type for t in smelt.to_proto(result.model).graph.initializer]
    assert onnx.TensorProto.INT4 in types  # of the product, in blocks of a column
    assert onnx.TensorProto.UINT8 in types  # of the table, in blocks of a row


@pytest.mark.parametrize("grid", [INT4, NORMAL_FLOAT4], ids=["int4", "nf4"])
def test_bytes_are_built_as_they_are_stored(grid: Grid) -> None:
    rng = np.random.default_rng(0)
    codes = weight_blocks(rng.normal(size=(6, 32)).astype(np.float32), 1, 16, grid)
    model = smelt.load(
        onnx.parser.parse_model(
            f'<ir_version: 10, opset_import: ["" : 21]> f ({grid.dtype}[6,32] c) => (int8[6,32] y)'
            "{ y = Cast<to=3>(c) }"
        )
    )
    b = Builder(model, model.graph, ShapeInference(model))
    built = bytes_of_codes(b, model.graph.inputs[0])
    model.graph.outputs[:] = [built]
    (made,) = OnnxRuntime(model)(codes.codes)
    np.testing.assert_array_equal(made, two_codes_a_byte(codes))
