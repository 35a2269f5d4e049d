"""What the key of a job depends on."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from smelt.batch import content
from smelt.batch.content import files_of, key_of, size_of


def with_weights(path, location, value=1.0):
    """A model whose weight stands in a file beside it."""
    model = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["": 20]> '
        "g (float[B,4] x) => (float[B,4] y) { y = Add(x, w) }"
    )
    model.graph.initializer.append(numpy_helper.from_array(np.full(4, value, np.float32), "w"))
    onnx.save(model, path, save_as_external_data=True, location=location, size_threshold=0)
    return path


@pytest.mark.parametrize("location", ["w", "w.bin", "sub/w.bin", "n" * 200, "ü ß.data"])
def test_weights_beside_a_model_are_part_of_it(tmp_path, location):
    (tmp_path / location).parent.mkdir(exist_ok=True)
    model = with_weights(tmp_path / "a.onnx", location)
    before = key_of([model], "optimize", [])
    assert files_of(model) == [model, tmp_path / location]
    assert size_of(model) == (tmp_path / "a.onnx").stat().st_size + 16
    (tmp_path / location).write_bytes(bytes(16))
    assert key_of([model], "optimize", []) != before


def test_no_file_outside_of_the_folder_is_read(tmp_path):
    folder = tmp_path / "m"
    folder.mkdir()
    model = with_weights(folder / "a.onnx", "w" * 9)
    (tmp_path / "w.bin").write_bytes(b"secret")
    data = (folder / "a.onnx").read_bytes().replace(b"w" * 9, b"../w.bin\0"[:9])
    for name in (b"../w.bin\0", b"../w.bin/", b"/dev/zero"):
        (folder / "a.onnx").write_bytes(data.replace(b"../w.bin\0", name))
        assert files_of(model) == [model]


def test_models_without_weights_beside_them(tmp_path):
    for data in (b"", b"\x0a\x08location\x12", b"\x0a\x08location\x12\x7fshort"):
        (tmp_path / "a.onnx").write_bytes(data)
        assert files_of(tmp_path / "a.onnx") == [tmp_path / "a.onnx"]


def test_options_and_the_files_that_they_name_count(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.onnx").write_bytes(b"model")
    (tmp_path / "p.txt").write_text("cleanup")
    options = (
        *([], ["--stats"], ["--dim", "B=1"], ["--dimB=1"], ["--dim", "B=2"]),
        *(["--pipeline", "@p.txt"], ["--pipeline=@p.txt"], ["--inputs", "p.txt"]),
    )
    keys = [key_of(["a.onnx"], "optimize", given) for given in options]
    assert len({*keys, key_of(["a.onnx"], "verify", [])}) == len(keys) + 1
    (tmp_path / "p.txt").write_text("fuse")
    changed = [key_of(["a.onnx"], "optimize", given) for given in options]
    assert [a != b for a, b in zip(keys, changed, strict=True)] == [False] * 5 + [True] * 3


def test_smelt_and_what_extends_it_count(tmp_path, monkeypatch):
    (tmp_path / "a.onnx").write_bytes(b"model")
    keys = {key_of([tmp_path / "a.onnx"], "optimize", [])}
    monkeypatch.setattr(content, "VERSION", "9.9")
    keys.add(key_of([tmp_path / "a.onnx"], "optimize", []))
    monkeypatch.setattr(content, "package_of", lambda point: "other 2.0")
    keys.add(key_of([tmp_path / "a.onnx"], "optimize", []))
    assert len(keys) == 3
