"""``smelt merge``: what it prints, and what it refuses."""

import pytest
from merging.decoders import decoders
from small_models import HEADER

import smelt as api
from smelt.errors import ExitStatus


@pytest.fixture
def files(tmp_path):
    """Write the decoders of an encoder and decoder into files, and return their paths."""
    names = ("decoder_model.onnx", "decoder_with_past_model.onnx")
    return [
        api.save(model, tmp_path / name) for model, name in zip(decoders(True), names, strict=True)
    ]


def test_the_report_names_weights_empty_outputs_and_comparisons(smelt, files, tmp_path):
    output = tmp_path / "merged.onnx"
    result = smelt("merge", *files, "-o", output, "--verify", "final", "--dim", "B=2")
    assert result.exit_code == 0, result.stderr
    first, empty, *verified = result.stderr.splitlines()
    assert first == f"{output}: weights of 1,568 bytes became 800"
    assert empty == "empty while use_cache_branch is true: present.0.cross"
    assert [line.split()[1] for line in verified] == [file.name for file in files]
    assert all("batch" not in line and "B=2" in line for line in verified)


def test_json_has_the_same_facts(smelt, files, tmp_path, document):
    result = smelt(
        "merge",
        *files,
        "-o",
        tmp_path / "m.onnx",
        "--json",
        "--repeat-caches",
        "--condition",
        "past",
    )
    facts = document(result)
    assert facts["weights"] == [1568, 800]
    assert (facts["not_computed"], facts["caches"]) == (["present.0.cross"], "repeated")
    assert [value.name for value in api.load(facts["output"]).graph.inputs][-1] == "past"


@pytest.mark.parametrize(
    ("chosen", "code"),
    [((0,), "E674"), ((0, 1, 1), "E674"), ((1, 0), "E665"), ((0, 0), "E665")],
)
def test_wrong_models_leave_no_file(smelt, files, tmp_path, chosen, code):
    output = tmp_path / "merged.onnx"
    result = smelt("merge", *(files[index] for index in chosen), "-o", output)
    assert (result.exit_code, result.stderr.split()[0]) == (ExitStatus.USAGE, code)
    assert not output.exists()


def test_a_folder_that_does_not_exist(smelt, files, tmp_path):
    result = smelt("merge", *files, "-o", tmp_path / "no" / "merged.onnx")
    assert result.stderr.startswith("E614")


def test_share_writes_a_folder_with_one_file_of_weights(smelt, files, tmp_path):
    folder = tmp_path / "out"
    result = smelt("merge", *files, "--share", "-o", folder, "--verify", "final", "--dim", "S=3")
    assert result.exit_code == 0, result.stderr
    first, *verified = result.stderr.splitlines()
    assert first == f"{folder}: weights of 1,568 bytes became 784"
    assert [line.split()[1] for line in verified] == [file.name for file in files]
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        ["model.onnx_data", *(file.name for file in files)]
    )
    assert (folder / "model.onnx_data").stat().st_size == 768


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--dim", "Q=3"), "E633"),
        (("--share", "--dim", "Q=3"), "E633"),
        (("--share", "-"), "E637"),
        (("--share", "--repeat-caches"), "E637"),
        (("--share", "--tie-embeddings"), "E637"),
        (("--connect", "logits=ids", "--share"), "E637"),
        (("--connect", "logits=ids", "--condition", "past"), "E637"),
        (("--connect", "logits"), "E636"),
        (("--connect", "logits=ids", "--connect", "logits=mask"), "E673"),
        (("--share", "again"), "E669"),
    ],
)
def test_wrong_options(smelt, files, tmp_path, arguments, code):
    words = [str(files[0]) if word == "again" else word for word in arguments]
    result = smelt("merge", *files, *words, "-o", tmp_path / "out", "--verify", "final", stdin=b"")
    assert (result.exit_code, result.stderr.split()[0]) == (ExitStatus.USAGE, code)


def test_connect_tells_the_new_names(smelt, write, tmp_path):
    graph = "g (float[N] x) => (float[N] y) { y = Neg(x) }"
    first, second = (write(HEADER + graph, name) for name in ("a.onnx", "b.onnx"))
    words = ("--connect", "y=x", "--verify", "final")
    result = smelt("merge", first, second, *words, "-o", tmp_path / "out.onnx")
    assert result.exit_code == 0, result.stderr
    assert result.stderr.splitlines()[1].startswith("verified a.onnx and b.onnx")
    model = api.load(tmp_path / "out.onnx")
    assert [node.op_type for node in model.graph] == ["Neg", "Neg"]
    again = smelt("merge", first, second, "--connect", "x=x", "-o", tmp_path / "out.onnx")
    assert "y of the second model is now called b_y" in again.stderr
