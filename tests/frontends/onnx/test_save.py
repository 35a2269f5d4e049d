"""Models in one file, and with their weights beside it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx.reference import ReferenceEvaluator
from small_models import HEADER

from smelt.errors import UsageError
from smelt.frontends.onnx import load, save
from smelt.frontends.onnx.save import to_files

TEXT = (
    f"{HEADER} g (float[B,20] x) => (float[B,20] y, float[20,20] w) "
    "{ h = MatMul(x, weight)  w = Identity(weight)  y = MatMul(h, weight) }"
)
X = np.linspace(-1, 1, 40, dtype=np.float32).reshape(2, 20)


@pytest.fixture
def model() -> ir.Model:
    """A model of one weight of 1600 bytes, which three nodes read."""
    proto = onnx.parser.parse_model(TEXT)
    weight = np.arange(400, dtype=np.float32).reshape(20, 20) / 400
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, "weight"))
    return load(proto)


def results(path: Path) -> list[np.ndarray]:
    return ReferenceEvaluator(onnx.load(path)).run(None, {"x": X})


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("limit", [1599, 1600])
def test_weights_beyond_the_limit_go_beside_the_model(model, tmp_path, limit):
    path = save(model, tmp_path / "m.onnx", inline_limit=limit)
    apart = limit < 1600
    assert files(tmp_path) == ["m.onnx", *(["m.onnx.data"] if apart else [])]
    assert (path.stat().st_size < 1600) is apart
    expected = save(model, tmp_path / "whole.onnx")
    for ours, theirs in zip(results(path), results(expected), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_weight_that_many_nodes_read_is_written_once(model, tmp_path):
    save(model, tmp_path / "m.onnx", external_data=True)
    assert (tmp_path / "m.onnx.data").stat().st_size == 1600


def test_saving_leaves_the_model_and_can_be_repeated(model, tmp_path):
    path = tmp_path / "m.onnx"
    for _ in range(2):
        save(model, path, external_data=True)
    assert isinstance(
        model.graph.initializers["weight"].const_value, ir.Tensor | ir.TensorProtoTensor
    )
    assert files(tmp_path) == ["m.onnx", "m.onnx.data"]
    again = load(path)
    save(again, path, external_data=True)
    np.testing.assert_array_equal(results(path)[1], model.graph.initializers["weight"].const_value)


def test_a_file_survives_a_failure(model, tmp_path, monkeypatch):
    path = save(model, tmp_path / "m.onnx", external_data=True)
    before = path.read_bytes(), (tmp_path / "m.onnx.data").read_bytes()

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ir, "save", fail)
    with pytest.raises(UsageError, match="No space left") as caught:
        save(model, path, external_data=True)
    assert caught.value.code == "E630"
    assert files(tmp_path) == ["m.onnx", "m.onnx.data"]
    assert (path.read_bytes(), (tmp_path / "m.onnx.data").read_bytes()) == before


def test_the_files_of_an_artifact(model, tmp_path):
    (whole,) = to_files(model, "m.onnx").items()
    assert whole[0] == "m.onnx"
    apart = to_files(model, "m.onnx", inline_limit=100)
    assert sorted(apart) == ["m.onnx", "m.onnx.data"]
    for name, data in apart.items():
        (tmp_path / name).write_bytes(data)
    np.testing.assert_allclose(results(tmp_path / "m.onnx")[0].shape, (2, 20))
