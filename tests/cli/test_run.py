"""``smelt run``: inputs from files or made up, and what comes out."""

import sys

import numpy as np
import onnx
import pytest
from small_models import HEADER

TWO = (
    HEADER + "g (float[B,4] x, int64[B] i) => (float[B,4] y, int64[B] j) { y = Relu(x) j = Neg(i) }"
)


def test_outputs_are_shown_with_their_numbers(smelt, write, document):
    result = smelt("run", write(TWO), "--dim", "B=3")
    assert result.exit_code == 0, result.stderr
    assert "float[3,4]" in result.stdout
    assert "made up: x random:0, i random:0" in result.stderr
    outputs = document(smelt("run", write(TWO), "--json"))["outputs"]
    assert [(each["name"], each["dtype"], each["shape"]) for each in outputs] == [
        ("y", "float", [1, 4]),
        ("j", "int64", [1]),
    ]


def test_inputs_come_from_files_and_results_go_to_one(smelt, write, tmp_path):
    x = np.array([[1, -2, np.nan, np.inf]], np.float32)
    np.save(tmp_path / "x.npy", x)
    tensor = onnx.numpy_helper.from_array(np.array([7]), "i")
    (tmp_path / "i.pb").write_bytes(tensor.SerializeToString())
    inputs = ("--input", f"x={tmp_path}/x.npy", "--input", f"i={tmp_path}/i.pb")
    result = smelt("run", write(TWO), *inputs, "-o", tmp_path / "o.npz")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.splitlines()[1].split()[-2:] == ["1", "1"]
    with np.load(tmp_path / "o.npz") as saved:
        np.testing.assert_array_equal(saved["y"], np.maximum(x, 0))
        np.testing.assert_array_equal(saved["j"], [-7])


def test_one_file_holds_all_inputs_and_says_the_sizes(smelt, write, tmp_path, document):
    np.savez(tmp_path / "d.npz", x=np.ones((2, 4), np.float32), i=np.arange(2))
    report = document(smelt("run", write(TWO), "--inputs", tmp_path / "d.npz", "--json"))
    assert (report["sizes"], report["made_up"]) == ({"B": 2}, {})


def test_results_stream(smelt, write, tmp_path):
    result = smelt("run", "-", "--input", "x=zeros", "-o", "-", stdin=write(TWO).read_bytes())
    assert result.exit_code == 0, result.stderr
    (tmp_path / "o.npz").write_bytes(result.stdout_bytes)
    assert not np.load(tmp_path / "o.npz")["y"].any()
    assert "float[1,4]" in result.stderr


def test_the_random_inputs_are_those_of_verification(smelt, write, tmp_path):
    from smelt.frontends.onnx import load
    from smelt.runtime.inputs import random_inputs

    model = write(HEADER + "g (float[B,4] x) => (float[B,4] y) { y = Identity(x) }")
    for what, seed in (("random", 0), ("random:5", 5)):
        smelt("run", model, "--input", f"x={what}", "--dim", "B=2", "-o", tmp_path / "o.npz")
        [expected] = random_inputs(load(model), {"B": 2}, seed)
        np.testing.assert_array_equal(np.load(tmp_path / "o.npz")["y"], expected)


@pytest.mark.parametrize(
    ("name", "array", "says"),
    [
        ("x", np.ones((2, 4)), "astype('float32')"),
        ("x", np.ones((2, 5), np.float32), "float[B,4], not float[2,5]"),
        ("x", np.ones(4, np.float32), "not float[4]"),
        ("X", np.ones((2, 4), np.float32), "there is no input 'X'"),
        ("i", np.array(["a"]), "int64[B], not string[1]"),
    ],
)
def test_inputs_that_do_not_fit_say_what_the_model_wants(smelt, write, tmp_path, name, array, says):
    np.savez(tmp_path / "d.npz", **{name: array})
    result = smelt("run", write(TWO), "--inputs", tmp_path / "d.npz")
    assert result.exit_code == 2
    assert result.stderr.startswith("E632")
    assert says in result.stderr
    assert "its inputs are x: float[B,4], i: int64[B]" in result.stderr


def test_defaults_of_inputs_are_used_unless_they_are_given(smelt, write, tmp_path):
    proto = onnx.load(
        write(HEADER + "g (float[2] x, float[2] d) => (float[2] y) { y = Add(x, d) }")
    )
    default = onnx.numpy_helper.from_array(np.full(2, 5, np.float32), "d")
    proto.graph.initializer.append(default)
    (tmp_path / "d.onnx").write_bytes(proto.SerializeToString())
    zeros = ("--input", "x=zeros", "-o", tmp_path / "o.npz")
    result = smelt("run", tmp_path / "d.onnx", *zeros)
    assert "d default" in result.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "o.npz")["y"], [5, 5])
    smelt("run", tmp_path / "d.onnx", *zeros, "--input", "d=zeros")
    np.testing.assert_array_equal(np.load(tmp_path / "o.npz")["y"], [0, 0])


def test_a_run_that_fails_proposes_other_sizes(smelt, write):
    text = HEADER + "g (float[N] x, float[M] z) => (float[N] y) { y = Add(x, z) }"
    result = smelt("run", write(text), "--dim", "N=2", "--dim", "M=3")
    assert (result.exit_code, result.stderr[:4]) == (3, "E321")
    assert "it ran at N=2, M=3; choose other sizes with --dim" in result.stderr


def test_sizes_that_contradict_each_other_are_told(smelt, write, tmp_path):
    np.savez(tmp_path / "d.npz", x=np.ones((2, 4), np.float32), i=np.arange(3))
    result = smelt("run", write(TWO), "--inputs", tmp_path / "d.npz")
    assert "B is 2 in 'x', but 3 in 'i'" in result.stderr
    result = smelt("run", write(TWO), "--inputs", tmp_path / "d.npz", "--dim", "B=4")
    assert "B is 4 as bound, but 2 in 'x'" in result.stderr
    assert "E633" in smelt("run", write(TWO), "--dim", "C=4").stderr


@pytest.mark.parametrize(
    ("content", "file"),
    [
        (b"", "d.npz"),
        (b"PK\x03\x04 broken", "d.npz"),
        (
            b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (9,), }",
            "d.npy",
        ),
        (b"\x08\x01\x08", "d.pb"),
        (b"", "d.pb"),
        (b"1,2", "d.csv"),
    ],
)
def test_files_that_hold_no_arrays_are_refused(smelt, write, tmp_path, content, file):
    (tmp_path / file).write_bytes(content)
    result = smelt("run", write(TWO), "--input", f"x={tmp_path / file}")
    assert result.exit_code == 2, result.stderr
    assert result.stderr.startswith("E636" if file.endswith("csv") else "E617")
    assert smelt("run", write(TWO), "--inputs", tmp_path / file).exit_code == 2


def test_pickled_objects_are_not_loaded(smelt, write, tmp_path):
    np.savez(tmp_path / "d.npz", x=np.array([{}], object))
    assert "Python objects" in smelt("run", write(TWO), "--inputs", tmp_path / "d.npz").stderr


def test_element_types_that_numpy_lacks_survive_files(smelt, write, tmp_path):
    text = HEADER + "g (bfloat16[B] x) => (bfloat16[B] y) { y = Identity(x) }"
    model, first, second = write(text), tmp_path / "a.npz", tmp_path / "b.npz"
    assert smelt("run", model, "--dim", "B=3", "-o", first).exit_code == 0
    data = dict(np.load(first))
    np.savez(tmp_path / "x.npz", x=data["y"])
    result = smelt("run", model, "--inputs", tmp_path / "x.npz", "-o", second)
    assert result.exit_code == 0, result.stderr
    assert np.load(second)["y"].tobytes() == data["y"].tobytes()


def test_a_sequence_is_written_item_by_item(smelt, write, tmp_path):
    text = HEADER + "g (float[2] x) => (seq(float[2]) s) { s = SequenceConstruct(x, x) }"
    result = smelt("run", write(text), "-o", tmp_path / "o.npz")
    assert result.exit_code == 0, result.stderr
    assert sorted(np.load(tmp_path / "o.npz")) == ["s[0]", "s[1]"]


def test_names_never_become_paths(smelt, write, tmp_path):
    proto = onnx.parser.parse_model(HEADER + "g (float[2] x) => (float[2] y) { y = Relu(x) }")
    proto.graph.output[0].name = proto.graph.node[0].output[0] = "../file"
    (tmp_path / "h.onnx").write_bytes(proto.SerializeToString())
    result = smelt("run", tmp_path / "h.onnx", "-o", tmp_path / "o.npz")
    assert result.exit_code == 0, result.stderr
    assert list(np.load(tmp_path / "o.npz")) == ["../file"]
    assert not (tmp_path.parent / "file.npy").exists()


def test_functions_run_on_arrays_or_on_types(smelt, tmp_path, monkeypatch, document):
    (tmp_path / "runs.py").write_text(
        "import numpy as np\n\n\ndef f(x, y):\n    return {'a': x + y}\n\n\n"
        "def g(x):\n    raise ValueError('not today')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    np.save("x.npy", np.ones(2, np.float32))
    result = smelt("run", "runs:f", "--input", "x.npy", "--input", "y=x.npy", "--json")
    assert document(result)["outputs"][0]["max"] == 2
    result = smelt("run", "runs:f", "--input", "f32[B]", "--input", "f32[B]", "--dim", "B=5")
    assert "float[5]" in result.stdout, result.stderr
    refused = smelt("run", "runs:f", "--input", "x.npy")
    assert (refused.exit_code, "missing a required argument" in refused.stderr) == (2, True)
    raised = smelt("run", "runs:g", "--input", "x.npy")
    assert raised.stderr.startswith("E113 your function raised ValueError")
    assert "runs.py:9" in raised.stderr
    assert "E608" in smelt("run", "runs:f", "--target", "host").stderr
