"""``--inputs``: comparing on real inputs; ``--dim`` of optimize, which binds."""

import numpy as np
import onnx
import pytest
from small_models import HEADER, MODEL

# Differ only where an element is above 100, which random inputs do not reach.
PLAIN = HEADER + "g (float[B,4] x) => (float[B,4] y) { y = Relu(x) }"
CAPPED = HEADER + (
    "g (float[B,4] x) => (float[B,4] y) <float c = {100000}> { r = Relu(x) y = Min(r, c) }"
)


@pytest.fixture
def npz(tmp_path):
    """Write arrays by name and return the path."""

    def write_npz(name="d.npz", **arrays):
        np.savez(tmp_path / name, **arrays)
        return tmp_path / name

    return write_npz


def ones(*shape):
    return np.ones(shape, np.float32)


def test_real_inputs_show_what_random_ones_do_not(smelt, write, npz, document):
    a, b = write(PLAIN), write(CAPPED, "b.onnx")
    assert smelt("verify", a, b).exit_code == 0
    found = smelt("verify", a, b, "--inputs", npz(x=500000 * ones(2, 4)), "--json")
    assert found.exit_code == 1
    [trial] = document(found)["trials"]
    assert (trial["inputs"], trial["sizes"], trial["ok"]) == ("given", {"B": 2}, False)


def test_an_axis_in_front_counts_samples_and_files_are_samples(smelt, write, npz, document):
    model = write(PLAIN)
    many, one = npz(x=ones(3, 2, 4)), npz("one.npz", x=ones(5, 4))
    files = ("--inputs", many, "--inputs", one)
    trials = document(smelt("verify", model, model, *files, "--json"))["trials"]
    assert [trial["inputs"] for trial in trials] == [
        *("given 1[0]", "given 1[1]", "given 1[2]", "given 2"),
    ]
    assert [trial["sizes"]["B"] for trial in trials] == [2, 2, 2, 5]


def test_a_batch_is_cut_for_a_folder_of_one_size(smelt, write, npz, tmp_path):
    model, folder = write(MODEL), tmp_path / "out"
    assert smelt("compile", model, "--target", "c", "--dim", "B=2", "-o", folder).exit_code == 0
    result = smelt("verify", model, folder, "--inputs", npz(x=ones(6, 4)))
    assert result.exit_code == 0, result.stderr
    assert "given[2]" in result.stdout


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"z": ones(2, 4)}, "no arrays for 'x'"),
        ({"x": ones(2, 4), "z": ones(2, 4)}, "no input 'z'"),
        ({"x": np.ones((2, 4))}, "double[2,4]"),
        ({"x": ones(2, 5)}, "float[2,5]"),
        ({}, "no arrays for 'x'"),
        ({"x": ones(0, 2, 4)}, "float[0,2,4]"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(smelt, write, npz, arrays, says):
    model = write(PLAIN)
    result = smelt("verify", model, model, "--inputs", npz(**arrays))
    assert (result.exit_code, result.stderr[:4]) == (2, "E632")
    assert says in result.stderr


def test_arrays_without_a_name_and_sizes_beside_them_are_refused(smelt, write, npz, tmp_path):
    model = write(PLAIN)
    np.save(tmp_path / "x.npy", ones(2, 4))
    assert "E636" in smelt("verify", model, model, "--inputs", tmp_path / "x.npy").stderr
    file = npz(x=ones(2, 4))
    assert "E637" in smelt("verify", model, model, "--inputs", file, "--dim", "B=2").stderr
    assert "E637" in smelt("optimize", model, "-o", "-", "--inputs", file).stderr
    assert "E637" in smelt("compile", model, "-o", tmp_path / "o", "--inputs", file).stderr


def test_tensors_of_a_test_data_set_are_one_sample(smelt, write, tmp_path, document):
    text = HEADER + "g (float[2] x, float[2] z) => (float[2] y) { y = Add(x, z) }"
    files = []
    for name in ("x", "z"):
        tensor = onnx.numpy_helper.from_array(ones(2), name)
        files += ["--inputs", tmp_path / f"{name}.pb"]
        (tmp_path / f"{name}.pb").write_bytes(tensor.SerializeToString())
    model = write(text)
    report = document(smelt("verify", model, model, *files, "--json"))
    assert [trial["inputs"] for trial in report["trials"]] == ["given"]


@pytest.mark.parametrize("mode", ["final", "each"])
def test_optimize_is_verified_on_real_inputs(smelt, write, npz, tmp_path, mode):
    out = ("-o", tmp_path / "o.onnx", "--verify", mode)
    result = smelt("optimize", write(MODEL), *out, "--inputs", npz(x=ones(3, 2, 4)))
    assert result.exit_code == 0, result.stderr
    assert "on 3 given inputs at B=2" in result.stderr
    bound = smelt("optimize", write(MODEL), *out, "--inputs", npz(x=ones(2, 4)), "--dim", "B=2")
    assert bound.exit_code == 0, bound.stderr
    other = smelt("optimize", write(MODEL), *out, "--inputs", npz(x=ones(2, 4)), "--dim", "B=1")
    assert "none of the given inputs has the sizes B=1" in other.stderr


def dims_of(path):
    [value] = onnx.load(path).graph.input
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


@pytest.mark.parametrize("mode", ["off", "final", "each"])
def test_one_size_binds_and_several_only_steer(smelt, write, tmp_path, mode):
    out = tmp_path / "o.onnx"
    result = smelt("optimize", write(MODEL), "-o", out, "--dim", "B=2", "--verify", mode)
    assert result.exit_code == 0, result.stderr
    assert "dim B bound to 2" in result.stderr
    assert dims_of(out) == [2, 4]
    result = smelt("optimize", write(MODEL), "-o", out, "--dim", "B=2,5", "--verify", mode)
    assert result.exit_code == 0, result.stderr
    assert "bound" not in result.stderr
    assert dims_of(out) == ["B", 4]
    assert ("at B=2,5" in result.stderr) == (mode != "off")
    refused = smelt("optimize", write(MODEL), "-o", out, "--dim", "Q=1")
    assert (refused.exit_code, refused.stderr[:4]) == (2, "E633")


@pytest.mark.parametrize("target", ["c", "host", "onnx"])
def test_compile_compares_before_it_writes(smelt, write, npz, tmp_path, document, target):
    out = ("--target", target, "-o", tmp_path / "o", "--dim", "B=2", "--verify", "final")
    result = smelt("compile", write(MODEL), *out)
    assert result.exit_code == 0, result.stderr
    assert "verified at B=2" in result.stderr
    result = smelt("compile", write(MODEL), *out, "--inputs", npz(x=ones(4, 4)), "--json")
    assert [t["inputs"] for t in document(result)["verification"]["trials"]] == [
        *("given[0]", "given[1]"),
    ]
    empty = smelt("compile", write(MODEL), *out, "--inputs", npz(x=ones(3, 3)))
    assert empty.exit_code == 2
