"""Read packages: what was written comes back, and damaged or hostile files get a coded error."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

import smelt
from smelt.errors import SmeltError
from smelt.frontends.coreml.detect import is_core_ml, split_function
from smelt.mlpackage.folder import WeightFiles
from smelt.mlpackage.program import Constant
from smelt.mlpackage.read import read_package
from smelt.mlpackage.wire import encode

PACKAGES = Path(__file__).parents[1] / "frontends/coreml/packages.zip"
MODEL = "Data/com.apple.CoreML/model.mlmodel"
WEIGHTS = "Data/com.apple.CoreML/weights/weight.bin"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of a small network that coremltools wrote."""
    with ZipFile(PACKAGES) as file:
        names = [name for name in file.namelist() if name.startswith("cnn_image/opt.mlpackage")]
        file.extractall(tmp_path, names)
    return tmp_path / "cnn_image/opt.mlpackage"


def code_of(source: Path | bytes) -> str:
    """The code of the error that loading raises."""
    with pytest.raises(SmeltError) as caught:
        smelt.load(source)
    assert caught.value.what
    assert caught.value.fix
    return caught.value.code


def test_weights_are_mapped_not_copied(package: Path) -> None:
    program = read_package(package).program
    operations = program.functions["main"].body.operations
    constants = [each.attributes["val"] for each in operations if each.type == "const"]
    stored = [each for each in constants if isinstance(each, Constant) and each.in_file]
    assert stored
    assert all(not np.asarray(each.value).flags.owndata for each in stored)


def test_a_model_file_is_read_by_path_and_bytes(package: Path) -> None:
    """Without the package around it, only a model with weights in the file is missing them."""
    assert smelt.load(package / MODEL).graph.inputs[0].name == "x"
    assert code_of((package / MODEL).read_bytes()) == "E314"


def test_files_are_told_apart(package: Path, tmp_path: Path) -> None:
    data = (package / MODEL).read_bytes()
    assert is_core_ml(package)
    assert is_core_ml(data)
    assert not is_core_ml(tmp_path / "m.onnx")
    assert not is_core_ml(b"\x08\x07rubbish")
    assert split_function(f"{package}#f") == (package, "f")
    assert split_function("a#b/m.onnx") == (Path("a#b/m.onnx"), "")


def test_every_cut_of_the_model_is_refused(package: Path) -> None:
    """Cut anywhere, the file is refused, or what is left is a whole model: never a traceback."""
    path = package / MODEL
    data = path.read_bytes()
    for size in range(0, len(data) - 1, 97):
        path.write_bytes(data[:size])
        assert code_of(package)[:2] in ("E1", "E3"), size


def test_every_damaged_byte_is_refused_or_read(package: Path) -> None:
    path = package / MODEL
    data = path.read_bytes()
    rng, codes = np.random.default_rng(1), set()
    for at in rng.integers(0, len(data), 150):
        damaged = bytearray(data)
        damaged[at] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        codes.add(outcome(package))
    assert codes <= {"read", "E1", "E3", "E5", "E6"}


def outcome(source: Path) -> str:
    """The family of the error that loading raises, or that the file is read."""
    try:
        smelt.load(source)
    except SmeltError as error:
        return error.code[:2]
    return "read"


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("../../../etc/passwd", "E313"),
        ("/etc/passwd", "E313"),
        ("", "E313"),
        ("com.apple.CoreML/../../../up", "E313"),
        ("com.apple.CoreML", "E609"),
        ("nothing.mlmodel", "E609"),
        ("a\0b", "E313"),
        (7, "E313"),
    ],
)
def test_a_manifest_leads_nowhere_else(package: Path, target: object, code: str) -> None:
    manifest = json.loads((package / "Manifest.json").read_text("utf-8"))
    manifest["itemInfoEntries"][manifest["rootModelIdentifier"]]["path"] = target
    (package / "Manifest.json").write_text(json.dumps(manifest))
    assert code_of(package) == code


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"rootModelIdentifier": "a"}', "[" * 100_000])
def test_a_manifest_that_names_no_model(package: Path, text: str) -> None:
    (package / "Manifest.json").write_text(text)
    assert code_of(package) == "E302"


def test_links_out_of_the_package_are_not_followed(package: Path, tmp_path: Path) -> None:
    shutil.move(package / WEIGHTS, tmp_path / "elsewhere.bin")
    (package / WEIGHTS).symlink_to(tmp_path / "elsewhere.bin")
    assert code_of(package) == "E313"


def test_a_weight_file_that_is_cut_or_missing(package: Path) -> None:
    path = package / WEIGHTS
    data = path.read_bytes()
    for size in (0, 64, 100, len(data) // 2, len(data) - 64):
        path.write_bytes(data[:size])
        assert code_of(package) == "E314"
    path.unlink()
    assert code_of(package) == "E609"


@pytest.mark.skipif(not Path("/dev/null").is_char_device(), reason="needs /dev/null")
def test_a_weight_file_is_a_regular_file() -> None:
    with pytest.raises(SmeltError, match="not a regular file") as caught:
        WeightFiles(Path("/dev")).data("null")
    assert caught.value.code == "E609"


def test_a_record_of_another_type(package: Path) -> None:
    path = package / WEIGHTS
    data = bytearray(path.read_bytes())
    for place in range(64, len(data), 64):
        if data[place : place + 4] == b"\xef\xbe\xad\xde":
            data[place + 4] ^= 3
    path.write_bytes(data)
    assert code_of(package) == "E314"


def model(**fields: object) -> bytes:
    """The bytes of a Model message."""
    return encode("Model", {"specificationVersion": 8, **fields})


def test_other_types_of_models_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "old.mlmodel"
    path.write_bytes(model(neuralNetwork=b""))
    with pytest.raises(SmeltError, match="type neuralNetwork") as caught:
        smelt.load(path)
    assert caught.value.code == "E122"


def tensor(dims: list[int], rank: int | None = None) -> dict:
    """A tensor type."""
    sizes = [{"constant": {"size": dim}} for dim in dims]
    return {"tensorType": {"dataType": 11, "rank": rank or len(dims), "dimensions": sizes}}


def function(kind: dict, operations: list[dict], outputs: list[str]) -> bytes:
    """A model of one function."""
    block = {"operations": operations, "outputs": outputs}
    body = {"inputs": [{"name": "x", "type": kind}], "opset": "CoreML7"}
    body["block_specializations"] = {"CoreML7": block}
    return model(mlProgram={"version": 1, "functions": {"main": body}})


def operation(name: str, reads: str, writes: str, kind: dict) -> dict:
    """An operation of one input and one result."""
    inputs = {"x": {"arguments": [{"name": reads}]}}
    return {"type": name, "inputs": inputs, "outputs": [{"name": writes, "type": kind}]}


def test_absurd_sizes_ranks_and_cycles() -> None:
    small = tensor([2])
    good = function(small, [operation("relu", "x", "y", small)], ["y"])
    assert smelt.load(good).graph.outputs[0].name == "y"
    assert code_of(function(tensor([2**31 - 1, 2**31 - 1]), [], ["x"])) == "E501"
    assert code_of(function(tensor([2**40]), [], ["x"])) == "E302"
    assert code_of(function(tensor([2], 3), [], ["x"])) == "E302"
    cycle = [operation("relu", "b", "a", small), operation("relu", "a", "b", small)]
    assert code_of(function(small, cycle, ["a"])) == "E305"


def test_absurd_nesting() -> None:
    block: dict = {"outputs": ["x"]}
    for _ in range(5000):
        block = encode("Block", {"operations": [{"type": "cond", "blocks": [block]}]})
    body = {"opset": "CoreML7", "block_specializations": {"CoreML7": block}}
    assert code_of(model(mlProgram={"functions": {"main": body}})) == "E301"
