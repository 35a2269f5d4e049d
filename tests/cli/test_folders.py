"""A folder of ``smelt compile`` is run and compared like a model."""

import numpy as np
import pytest
from small_models import HEADER, MODEL

GATHER = HEADER + (
    "g (int64[3] i, float[3,2] x) => (float[3,2] y) <float[5,2] t = {1,2,3,4,5,6,7,8,9,10}> "
    "{ r = Gather(t, i) y = Add(r, x) }"
)


@pytest.fixture
def compiled(smelt, tmp_path):
    """Compile a model and return the folder."""

    def compile_(model, target, *options):
        folder = tmp_path / f"out-{target}"
        result = smelt("compile", model, "--target", target, "-o", folder, *options)
        assert result.exit_code == 0, result.stderr
        return folder

    return compile_


@pytest.mark.parametrize("target", ["c", "host", "onnx"])
def test_a_folder_computes_what_its_model_does(smelt, write, tmp_path, compiled, target):
    model = write(MODEL)
    folder = compiled(model, target, "--dim", "B=2")
    same = smelt("verify", model, folder)
    assert same.exit_code == 0, same.stderr
    assert "B=2" in same.stdout
    other = write(MODEL.replace("Relu(h)", "Neg(h)"), "other.onnx")
    assert smelt("verify", other, folder).exit_code == 1
    for source, file in ((model, "a.npz"), (folder, "b.npz")):
        options = ("--dim", "B=2") if source is model else ()
        result = smelt("run", source, "-o", tmp_path / file, *options)
        assert result.exit_code == 0, result.stderr
    a, b = (np.load(tmp_path / file)["y"] for file in ("a.npz", "b.npz"))
    np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_library_of_another_name_with_indices(smelt, write, tmp_path, compiled):
    """Indices that are made up for a library stay inside its tables."""
    folder = compiled(write(GATHER), "c", "--option", "name=table")
    result = smelt("run", folder, "-o", tmp_path / "o.npz")
    assert result.exit_code == 0, result.stderr
    smelt("run", write(GATHER), "-o", tmp_path / "p.npz")
    np.testing.assert_array_equal(*(np.load(tmp_path / file)["y"] for file in ("o.npz", "p.npz")))
    assert smelt("verify", folder, folder).exit_code == 0


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("model.h", lambda data: data.replace(b"INPUT0_BYTES 32", b"INPUT0_BYTES 16")),
        ("model.h", lambda data: b""),
        ("model.json", lambda data: data.replace(b'"float"', b'"floot"')),
        ("model.json", lambda data: data.replace(b"2", b"-2", 1)),
        ("model.c", None),
    ],
)
def test_a_damaged_folder_is_refused(smelt, write, compiled, file, change):
    folder = compiled(write(MODEL), "c", "--dim", "B=2")
    path = folder / file
    path.write_bytes(change(path.read_bytes())) if change else path.unlink()
    result = smelt("run", folder)
    assert (result.exit_code, result.stderr[:4]) == (2, "E616")


def test_folders_that_cannot_be_run_say_why(smelt, write, tmp_path, compiled):
    (tmp_path / "empty").mkdir()
    assert "no installed target wrote it" in smelt("run", tmp_path / "empty").stderr
    assert smelt("verify", write(MODEL), tmp_path / "empty").stderr.startswith("E616")
    library = compiled(write(MODEL), "c", "--dim", "B=2")
    assert "compiled for 'c' already" in smelt("run", library, "--target", "c").stderr


def test_a_file_is_no_folder(smelt, write, tmp_path):
    model, file = write(MODEL), tmp_path / "file"
    file.write_text("mine")
    refused = smelt("compile", model, "--target", "ort", "-o", file)
    assert "E614" in refused.stderr
    assert "it is a file, not a folder" in refused.stderr
    assert file.read_text() == "mine"
