"""Each form in which weights are written gives the same results, and compilers accept its files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from c_library import compile_c, random_inputs

from smelt.errors import UsageError
from smelt.ir import text
from smelt.runtime.c_library import build
from smelt.targets.c.saved import open_folder

FORMS = ["hex", "string", "incbin", "bin"]
GRAPH = (
    "g (float[3,40] x) => (float[3,50] y, int64[5] i, double[3] d, bool[2] b) { y = MatMul(x, w) }"
)


def model_with_weights(count: int = 40) -> ir.Model:
    """Return a model with a product, and with constants of other types as outputs."""
    model = text.parse(GRAPH.replace("40]", f"{count}]"), 23)
    rng = np.random.default_rng(0)
    arrays = {
        "w": rng.normal(size=(count, 50)).astype(np.float32),
        "i": np.array([0, -1, 2**63 - 1, -(2**63), 7]),
        "d": np.array([np.inf, -0.0, 1e-310]),
        "b": np.array([True, False]),
    }
    outputs = {value.name: value for value in model.graph.outputs}
    for name, array in arrays.items():
        value = outputs.get(name) or next(
            value for node in model.graph for value in node.inputs if value.name == name
        )
        value.const_value = ir.Tensor(array)
        value.type = ir.TensorType(ir.DataType.from_numpy(array.dtype))
        value.shape = ir.Shape(array.shape)
        model.graph.register_initializer(value)
    return model


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_results(form: str, tmp_path: Path) -> None:
    model = model_with_weights()
    arrays = {name: value.const_value.numpy() for name, value in model.graph.initializers.items()}
    (x,) = random_inputs(model)
    artifact = compile_c(model, weights=form)
    artifact.save(tmp_path)
    saved = open_folder(tmp_path)
    assert saved is not None
    for results in (artifact(x), saved.load()(x)):
        np.testing.assert_allclose(results[0], x @ arrays["w"], rtol=1e-5, atol=1e-5)
        for result, name in zip(results[1:], "idb", strict=True):
            assert np.asarray(result).tobytes() == arrays[name].tobytes()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "command",
    [
        ["gcc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion"],
        ["g++", "-std=c++11", "-x", "c++", "-Wall", "-Wextra", "-Wpedantic"],
    ],
    ids=["c99", "c++"],
)
def test_every_form_compiles_from_any_folder(form: str, command: list[str], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    files = compile_c(model_with_weights(), weights=form).files
    for name, data in files.items():
        (tmp_path / "out" / name).write_bytes(data)
    sources = [f"out/{name}" for name in files if name.endswith(".c")]
    done = subprocess.run(
        [*command, "-Werror", "-shared", "-fPIC", *sources, "-o", "model.so"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""


def test_large_weights_are_included_by_the_assembler() -> None:
    assert "model_weights.c.bin" in compile_c(model_with_weights(count=6000)).files
    assert "model_weights.c.bin" not in compile_c(model_with_weights()).files


def test_weights_of_the_caller_are_checked_before_they_are_read(tmp_path: Path) -> None:
    import ctypes

    artifact = compile_c(model_with_weights(), weights="bin")
    run = ctypes.CDLL(str(build(artifact.files, tmp_path))).model_run
    memory = np.zeros(8192, np.uint8)
    base = memory.ctypes.data + -memory.ctypes.data % 64
    outputs = (ctypes.c_void_p * 4)(base, base, base, base)
    run.argtypes = (ctypes.c_void_p,) * 4
    assert run((ctypes.c_void_p * 1)(base), outputs, base, None) == 1
    assert run((ctypes.c_void_p * 1)(base), outputs, base, base + 4) == 2
    assert b"#define MODEL_WEIGHTS_BYTES" in artifact.files["model.h"]


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(UsageError) as error:
        compile_c(model_with_weights(), weights="hexx")
    assert error.value.code == "E660"
    assert "hex" in (error.value.fix or "")
