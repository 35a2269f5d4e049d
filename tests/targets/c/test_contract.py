"""The header describes versions, shapes, types and scales; an example and build files go with it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_library import compile_text

import smelt
from smelt.errors import UsageError
from smelt.ir import text

QUANTIZED = (
    "g (uint8[2,3] x, int8[3] c) => (uint8[2,3] y, float[3] f) { s = Constant<value_float = 0.5>() "
    "z = Constant<value = uint8 {3}>() t = Constant<value_floats = [0.5, 1.0, 2.0]>() "
    "d = DequantizeLinear(x, s, z) r = Relu(d) y = QuantizeLinear(r, s, z) f = DequantizeLinear<axis = 0>(c, t) }"
)


def defined(header: bytes) -> dict[str, str]:
    return dict(re.findall(r"^#define MODEL_(\w+) (.*?)(?:  /\*.*)?$", header.decode(), re.M))


def test_the_header_says_what_a_caller_must_know() -> None:
    told = defined(compile_text(QUANTIZED).files["model.h"])
    assert told["INTERFACE_VERSION"] == "2"
    assert told["GENERATED_BY"].startswith('"smelt ')
    assert (told["INPUTS"], told["OUTPUTS"]) == ("2", "2")
    first = {name: told[f"INPUT0_{name}"] for name in ("BYTES", "TYPE", "RANK", "SHAPE")}
    assert first == {"BYTES": "6", "TYPE": "uint8_t", "RANK": "2", "SHAPE": "{2, 3}"}
    assert (told["INPUT0_SCALE"], told["INPUT0_ZERO_POINT"]) == ("0.5f", "3")
    assert (told["OUTPUT0_SCALE"], told["OUTPUT0_ZERO_POINT"]) == ("0.5f", "3")
    assert told["INPUT1_SCALES"] == "{0.5f, 1.0f, 2.0f}"
    assert told["INPUT1_ZERO_POINTS"] == "{0, 0, 0}"
    assert told["INPUT1_QUANTIZED_AXIS"] == "0"
    assert "OUTPUT1_SCALE" not in told
    assert {"OK", "ERROR_NULL", "ERROR_ALIGN", "ERROR_SIZE"} <= told.keys()


MLP = "g (float[2,3] x) => (float[2,4] y) <float[3,4] w = {1,2,3,4,5,6,7,8,9,10,11,12}> { m = MatMul(x, w) y = Exp(m) }"


@pytest.mark.parametrize("weights", ["hex", "incbin", "bin"])
def test_the_example_builds_and_runs(weights: str, tmp_path: Path) -> None:
    artifact = compile_text(MLP, weights=weights, project="cmake", name="digits")
    artifact.save(tmp_path)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
    sources = sorted(file.name for file in tmp_path.glob("*.c"))
    subprocess.run(["cc", *flags, *sources, "-o", "run", "-lm"], cwd=tmp_path, check=True)
    done = subprocess.run(["./run"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout == "output 0: 1 1 1 1 1 1 1 1\n"
    (y,) = artifact(np.zeros((2, 3), np.float32))
    assert (y == 1).all()


def test_cmake_builds_it(tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed; Debian has it in the package cmake")
    compile_text(MLP, project="cmake", weights="incbin").save(tmp_path)
    for command in (["cmake", "-S", ".", "-B", "build"], ["cmake", "--build", "build"]):
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    done = subprocess.run([tmp_path / "build" / "model_example"], check=True, capture_output=True)
    assert done.stdout.startswith(b"output 0: 1 1")


def test_a_module_of_zephyr_names_its_sources() -> None:
    files = compile_text(MLP, project="zephyr").files
    assert b"zephyr_library_sources(model.c model_weights.c)" in files["CMakeLists.txt"]
    assert files["zephyr/module.yml"] == b"name: model\nbuild:\n  cmake: .\n"


@pytest.mark.parametrize("alignment", [8, 4096])
def test_the_arena_begins_where_it_is_told_to(alignment: int) -> None:
    artifact = compile_text(
        "g (float[3,3] x) => (float[3,3] y) { a = MatMul(x, x) b = MatMul(a, x) y = MatMul(b, a) }",
        alignment=alignment,
    )
    told = defined(artifact.files["model.h"])
    assert told["ARENA_ALIGN"] == str(alignment)
    assert all(row.offset % alignment == 0 for row in artifact.plan.memory.rows())
    x = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    np.testing.assert_allclose(artifact(x)[0], x @ x @ x @ (x @ x), rtol=1e-4)


@pytest.mark.parametrize("wrong", [0, 4, 12, 8192, -64])
def test_no_other_alignment_is_taken(wrong: int) -> None:
    with pytest.raises(UsageError) as error:
        compile_text(MLP, alignment=wrong)
    assert error.value.code == "E660"


def test_the_report_counts_products_and_bytes() -> None:
    graph = (
        "g (float[1,4,8,8] x, float[6,2,3,3] w, float[216,5] v) => (float[1,5] y) "
        "{ c = Conv<group = 2>(x, w) f = Flatten(c) y = MatMul(f, v) }"
    )
    artifact = smelt.compile(text.parse(graph, 21), target="c")
    by_op = {each["op"]: each for each in artifact.report["kernels"]}
    assert by_op["Conv"]["macs"] == 6 * 6 * 6 * 2 * 3 * 3
    assert by_op["Conv"]["bytes_read"] == 4 * (4 * 64 + 6 * 2 * 9)
    assert by_op["Conv"]["bytes_written"] == 4 * 216
    assert by_op["DotGeneral"]["macs"] == 216 * 5
    assert artifact.plan.facts["macs"] == 3888 + 1080


def test_the_report_counts_products_of_bytes() -> None:
    graph = (
        "g (uint8[1,4,6,6] x, uint8[2,5] a) => (uint8[1,6,4,4] y, uint8[2,3] p, int32[2,3] i) "
        "<float s = {0.5}, uint8 z = {3}, int8 n = {0}, float t = {2.0}, int8[5,3] v = {"
        + ",".join("1" * 15)
        + "}, int8[6,2,3,3] w = {"
        + ",".join("1" * 108)
        + "}> { y = QLinearConv<group = 2>(x, s, z, w, s, n, t, z) "
        "p = QLinearMatMul(a, s, z, v, s, n, t, z) i = MatMulInteger(a, v, z) }"
    )
    artifact = smelt.compile(text.parse(graph, 21), target="c")
    by_op = {each["op"]: each["macs"] for each in artifact.report["kernels"]}
    assert by_op["QLinearConv"] == 6 * 4 * 4 * 2 * 3 * 3
    assert by_op["QLinearMatMul"] == by_op["MatMulInteger"] == 2 * 3 * 5
