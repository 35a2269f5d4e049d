"""Models saved in one file, and with external weights."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx.reference import ReferenceEvaluator
from small_models import HEADER

import smelt
from smelt.errors import InvalidModel, ResourceLimit
from smelt.frontends.onnx import load, save
from smelt.frontends.onnx.save import ModelFiles, to_proto
from smelt.ir import text

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
    before = model.graph.initializers["weight"].const_value.numpy().copy()
    for _ in range(2):
        save(model, path, external_data=True)
    assert files(tmp_path) == ["m.onnx", "m.onnx.data"]
    np.testing.assert_array_equal(model.graph.initializers["weight"].const_value.numpy(), before)
    again = load(path)
    save(again, path, external_data=True)
    np.testing.assert_array_equal(results(path)[1], before)


def test_weights_go_where_they_came_from(model, tmp_path):
    beside = save(model, tmp_path / "beside.onnx", external_data=True)
    save(load(beside), tmp_path / "again.onnx")
    save(load(save(model, tmp_path / "inside.onnx")), tmp_path / "still.onnx")
    save(load(beside).clone(), tmp_path / "clone.onnx")
    save(load(beside), tmp_path / "asked.onnx", external_data=False)
    assert [name for name in files(tmp_path) if name.endswith(".data")] == [
        "again.onnx.data",
        "beside.onnx.data",
        "clone.onnx.data",
    ]


def test_a_model_outlives_the_files_that_it_came_from(model, tmp_path):
    """The new file has other weights at the old offsets."""
    path = save(model, tmp_path / "m.onnx", external_data=True)
    loaded = load(path)
    other = load(path)
    other.graph.initializers["weight"].const_value = ir.tensor(np.zeros((20, 20), np.float32))
    save(other, path)
    assert not np.any(results(path)[1])
    weight = model.graph.initializers["weight"].const_value.numpy()
    np.testing.assert_array_equal(results(save(loaded, tmp_path / "n.onnx"))[1], weight)
    np.testing.assert_array_equal(results(save(loaded, path))[1], weight)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_keeps_the_existing_files(model, tmp_path, monkeypatch, number):
    path = save(model, tmp_path / "m.onnx", external_data=True)
    before = path.read_bytes(), (tmp_path / "m.onnx.data").read_bytes()
    fail = OSError(number, "no room")
    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(fail))
    for beside in (True, False):
        with pytest.raises(ResourceLimit, match="disk is full") as caught:
            save(model, path, external_data=beside)
        assert caught.value.code == "E505"
    assert files(tmp_path) == ["m.onnx", "m.onnx.data"]
    assert (path.read_bytes(), (tmp_path / "m.onnx.data").read_bytes()) == before


def test_a_full_device_is_a_full_disk(model):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with pytest.raises(ResourceLimit, match="disk is full"):
        save(model, "/dev/full")


def test_a_full_disk_leaves_no_folder_of_an_artifact(model, tmp_path, monkeypatch):
    artifact = smelt.compile(model)
    fail = OSError(errno.ENOSPC, "no room")
    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(fail))
    with pytest.raises(ResourceLimit):
        artifact.save(tmp_path / "a" / "b")
    assert files(tmp_path) == []


def test_the_files_of_an_artifact(model, tmp_path):
    (whole,) = ModelFiles(model, "m.onnx").items()
    assert whole[0] == "m.onnx"
    apart = ModelFiles(model, "m.onnx", inline_limit=100)
    assert sorted(apart) == ["m.onnx", "m.onnx.data"]
    assert apart.size == sum(len(data) for data in apart.values())
    for name, data in apart.items():
        (tmp_path / name).write_bytes(data)
    np.testing.assert_allclose(results(tmp_path / "m.onnx")[0].shape, (2, 20))


def test_a_spent_model_is_written_like_its_copy() -> None:
    model = text.parse("g (float[2] x) => (float[2] y) { a = Neg(x) y = Abs(a) }")
    assert to_proto(model) == to_proto(model, spent=True)


def test_a_protobuf_is_saved_as_it_is(tmp_path):
    proto = onnx.parser.parse_model(
        TEXT.replace(", weight)", ", x)").replace("Identity(weight)", "Neg(x)")
    )
    save(proto, tmp_path / "m.onnx")
    saved = onnx.load(tmp_path / "m.onnx")
    assert [node.op_type for node in saved.graph.node] == ["MatMul", "Neg", "MatMul"]
    proto.graph.node[0].input[0] = "nothing"
    with pytest.raises(InvalidModel):
        save(proto, tmp_path / "m.onnx")
    assert onnx.load(tmp_path / "m.onnx") == saved


def test_values_in_a_loop_of_a_function_are_written_without_types():
    """ONNX Runtime would apply such a type to a value of the main graph with the same name."""
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20, "own" : 1]> '
        "g (float[2] x) => (float[2] r) { r = own.twice(x) }"
        '<domain: "own", opset_import: ["" : 20]> twice (x) => (y) { '
        "n = Constant<value = int64 {2}>() t = Constant<value = bool {1}>() "
        "y = Loop(n, t, x)<body = b (int64 i, bool c, float[2] s) => (bool d, float[2] z) "
        "{ r = Add(i, n) f = CastLike(r, s) z = Add(s, f) d = Identity(c) }> }"
    )
    typed = onnx.helper.make_tensor_value_info("r", onnx.TensorProto.INT64, [])
    model.functions[0].node[2].attribute[0].g.value_info.append(typed)
    written = to_proto(ir.from_proto(model))
    assert not written.functions[0].node[2].attribute[0].g.value_info
    (result,) = ReferenceEvaluator(written).run(None, {"x": np.zeros(2, np.float32)})
    np.testing.assert_array_equal(result, [5, 5])
