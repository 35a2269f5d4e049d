"""Weights in a file beside the model are mapped once, whatever their type."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import helper, numpy_helper

import smelt
from smelt.errors import InvalidModel
from smelt.frontends.onnx import load, save

ARRAYS = [
    np.arange(12, dtype=np.float32).reshape(3, 4),
    np.arange(6).astype(ml_dtypes.bfloat16),
    np.array([-8, 7, 3]).astype(ml_dtypes.int4),
    np.array([[True, False]]),
    np.zeros((0, 3), np.int8),
    np.array(2.5),
    np.arange(3, dtype=np.uint8),
]


def stored(folder: Path, arrays: list[np.ndarray], *, in_nodes: bool = False) -> Path:
    """Return a model with ``arrays`` as external data of initializers or of Constant nodes."""
    tensors, data = [], b""
    for index, array in enumerate(arrays):
        tensor = numpy_helper.from_array(array, f"w{index}")
        raw = tensor.raw_data
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", "w.bin"), ("offset", len(data)), ("length", len(raw))):
            tensor.external_data.add(key=key, value=str(value))
        tensors.append(tensor)
        data += raw
    (folder / "w.bin").write_bytes(data)
    outputs = [
        helper.make_tensor_value_info(f"y{i}", tensor.data_type, tensor.dims)
        for i, tensor in enumerate(tensors)
    ]
    if in_nodes:
        nodes = [
            helper.make_node("Constant", [], [f"y{i}"], value=t) for i, t in enumerate(tensors)
        ]
    else:
        nodes = [helper.make_node("Identity", [f"w{i}"], [f"y{i}"]) for i in range(len(tensors))]
    graph = helper.make_graph(nodes, "g", [], outputs, [] if in_nodes else tensors)
    path = folder / "m.onnx"
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    path.write_bytes(proto.SerializeToString())
    return path


def held(model: ir.Model) -> list[np.ndarray]:
    tensors = [value.const_value for value in model.graph.initializers.values()]
    tensors += [n.attributes["value"].as_tensor() for n in model.graph if n.op_type == "Constant"]
    return [tensor.numpy() for tensor in tensors if tensor is not None]


@pytest.mark.parametrize("in_nodes", [False, True], ids=["initializers", "Constant nodes"])
def test_every_element_type(tmp_path: Path, in_nodes: bool) -> None:
    model = load(stored(tmp_path, ARRAYS, in_nodes=in_nodes))
    (tmp_path / "w.bin").unlink()
    for path in (tmp_path / "again.onnx", tmp_path / "m.onnx"):
        save(model, path)
        for got, expected in zip(held(load(path)), ARRAYS, strict=True):
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)


def test_a_model_may_be_optimized_over_itself(tmp_path: Path) -> None:
    """The weights come from the loaded file, even if the new file has the same name."""
    weight = np.arange(64, dtype=np.float32).reshape(8, 8)
    proto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[N,8] x) => (float[N,8] y) '
        "{ a = MatMul(x, w)  b = Mul(a, two)  y = MatMul(b, w) }"
    )
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    proto.graph.initializer.append(numpy_helper.from_array(np.float32([2] * 8), "two"))
    path = save(load(proto), tmp_path / "m.onnx", external_data=True)
    x = np.ones((1, 8), np.float32)
    for _ in range(2):
        save(smelt.optimize(str(path)), path)
        (result,) = smelt.compile(str(path))(x)
        np.testing.assert_allclose(result, 2 * (x @ weight @ weight), rtol=1e-5)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx", "m.onnx.data"]


def test_a_file_that_is_too_short_is_refused(tmp_path: Path) -> None:
    path = stored(tmp_path, ARRAYS)
    (tmp_path / "w.bin").write_bytes(b"1234")
    with pytest.raises(InvalidModel) as caught:
        load(path)
    assert caught.value.code == "E314"
