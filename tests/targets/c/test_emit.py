"""Properties of the generated library besides its results."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from c_library import Library, compile_c, compile_text, random_inputs
from c_programs import BLOCK, CNN

from smelt.errors import ErrorList, UsageError
from smelt.ir import text
from smelt.runtime.c_library import build


def test_allocates_nothing_and_prints_nothing() -> None:
    files = compile_text(CNN).files
    source = b"\n".join(files.values()).decode()
    assert not re.search(r"\b(malloc|calloc|alloca|free|printf|fopen|stdio|stdlib)\b", source)
    assert set(re.findall(r"#include (\S+)", source)) == {
        *('"model.c"', '"model.h"', '"model_weights.h"'),
        *("<math.h>", "<stddef.h>", "<stdint.h>", "<string.h>"),
    }


HOSTILE = [
    "*/ int evil; /*",
    "a\n#include <stdio.h>\n",
    "x??/",
    'a"\\',
    "\\",
    "é漢",
    "%s%n",
    "//",
    "y" * 500,
]


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_becomes_code(name: str, tmp_path: Path) -> None:
    model = text.parse(
        "g (float[2] x) => (float[2] y) { w = Constant<value_floats = [1.0, 2.0]>() t = Add(x, w) y = Neg(t) }",
        23,
    )
    for number, node in enumerate(model.graph):
        node.name = f"{name}{number}"
        node.outputs[0].name = f"{name}_{number}"
    model.graph.inputs[0].name = name
    model.graph.name = name
    files = dict(compile_c(model).files)
    plain = compile_text(
        "g (float[2] x) => (float[2] y) { w = Constant<value_floats = [1.0, 2.0]>() t = Add(x, w) y = Neg(t) }"
    ).files
    for file, data in files.items():
        if file.endswith(".json"):
            continue  # which no compiler reads
        source = data.decode("ascii")
        without = re.sub(r"/\*.*?\*/", "", source, flags=re.S)
        assert without == re.sub(r"/\*.*?\*/", "", plain[file].decode(), flags=re.S)
    build(files, tmp_path, ("-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror", "-trigraphs"))


@pytest.mark.parametrize("name", ["", "1a", "a b", "a;b", "int", "class", "_a", "../a", "a" * 61])
def test_a_name_that_c_cannot_use_is_refused(name: str) -> None:
    with pytest.raises(UsageError) as error:
        compile_text(CNN, name=name)
    assert error.value.code == "E660"


def test_an_unknown_option_is_refused() -> None:
    with pytest.raises(UsageError) as error:
        compile_text(CNN, speed="11")
    assert error.value.code == "E660"


def test_the_name_option_names_files_functions_and_macros() -> None:
    files = compile_text(CNN, name="digits").files
    code = ["digits.c", "digits.h", "digits_weights.c", "digits_weights.h"]
    assert sorted(files) == sorted([*code, "digits.json", "report.json"])
    assert b"int digits_run(" in files["digits.h"]
    assert b"DIGITS_ARENA_BYTES" in files["digits.h"]


def test_equal_functions_and_equal_weights_are_emitted_once() -> None:
    graph = (
        "g (float[8] x) => (float[8] y) { w = Constant<value_floats = [1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0]>() "
        "v = Constant<value_floats = [1.0,2.0,3.0,4.0,5.0,6.0,7.0,8.0]>() a = Add(x, w) b = Tan(a) c = Add(b, v) y = Tan(c) }"
    )
    files = compile_text(graph).files
    assert files["model_weights.c"].count(b"const union") == 1
    assert files["model.c"].count(b"static void Tan_") == 1


def run_function(graph: str, tmp_path: Path):
    artifact = compile_text(graph)
    library = ctypes.CDLL(str(build(artifact.files, tmp_path)))
    library.model_run.argtypes = (ctypes.c_void_p,) * 3
    return library.model_run


def test_null_and_misaligned_pointers_are_errors(tmp_path: Path) -> None:
    run = run_function(
        "g (float[8,8] x) => (float[8,8] y) { a = Exp(x) y = MatMul(a, a) }", tmp_path
    )
    memory = np.zeros(4096, np.uint8)
    base = memory.ctypes.data + -memory.ctypes.data % 64

    def status(x: int | None, y: int | None, arena: int | None) -> int:
        return run((ctypes.c_void_p * 1)(x), (ctypes.c_void_p * 1)(y), arena)

    x, y, arena = base, base + 256, base + 512
    assert status(x, y, arena) == 0
    assert status(None, y, arena) == 1
    assert status(x, None, arena) == 1
    assert status(x, y, None) == 1
    assert run(None, (ctypes.c_void_p * 1)(y), arena) == 1
    assert status(x, y, arena + 4) == 2
    assert status(x + 1, y, arena) == 2
    assert status(x, y + 2, arena) == 2


VARIANTS = {
    "baseline": ("-O1", "-DSMELT_NO_DISPATCH"),
    "dispatched": ("-O2",),
    "no vectors": ("-O1", "-DSMELT_NO_DISPATCH", "-DLANES=1"),
    "native": ("-O3", "-march=native"),
}


@pytest.mark.parametrize("flags", VARIANTS.values(), ids=VARIANTS)
def test_the_whole_cnn_agrees_with_onnx_runtime(flags: tuple[str, ...]) -> None:
    warnings = ("-Wall", "-Wextra", "-pedantic", "-Wshadow", "-Wconversion", "-Werror")
    library = Library(
        {"cnn": CNN, "block": BLOCK},
        flags=("-std=c99", *warnings, *flags),
        constant="w b v d q k s",
    )
    for name, built in library.models.items():
        library.check(name, random_inputs(built.source), rtol=1e-4, atol=1e-5)


def test_the_artifact_runs_and_reports() -> None:
    artifact = compile_text(CNN)
    inputs = random_inputs(text.parse(CNN))
    (y,) = artifact(*inputs)
    assert y.sum() == pytest.approx(1, abs=1e-5)
    assert artifact.plan.facts["arena_bytes"] >= artifact.plan.facts["bound_bytes"]
    assert artifact.report["memory"]["arena_bytes"] == artifact.plan.facts["arena_bytes"]
    with pytest.raises(UsageError) as error:
        artifact(*inputs[:-1])
    assert error.value.code.startswith("E6")


def digests() -> list[str]:
    return [
        hashlib.sha256(file).hexdigest()
        for graph in (CNN, BLOCK)
        for file in compile_text(graph).files.values()
    ]


def test_the_same_bytes_under_any_hash_seed() -> None:
    program = (
        "import sys; sys.path.insert(0, 'tests/targets/c')\n"
        "from test_emit import digests; print(*digests())"
    )
    other = "7" if os.environ.get("PYTHONHASHSEED") != "7" else "0"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": other, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.split() == digests()


REFUSED = {
    "E402": "g (complex64[4,2] x) => (complex64[2,4] y) { y = Transpose(x) }",
    "E201": "g (float[4] x) => (float[4] y) { a = Bernoulli(x) y = Cos(a) }",
}


@pytest.mark.parametrize("code", REFUSED)
def test_unsupported_models_are_refused_with_a_code(code: str) -> None:
    with pytest.raises(ErrorList) as error:
        compile_text(REFUSED[code])
    assert error.value.code == code


def test_everything_unsupported_is_told_at_once() -> None:
    graph = (
        "g (float[4] x) => (float[4] y, float[4] z) { y = Bernoulli(x) z = RandomNormalLike(x) }"
    )
    with pytest.raises(ErrorList) as error:
        compile_text(graph)
    assert len(error.value.errors) == 2


def test_a_missing_compiler_is_a_coded_error(monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = compile_text(CNN)
    monkeypatch.setenv("CC", "/nonexistent/cc")
    with pytest.raises(UsageError) as error:
        artifact(*random_inputs(text.parse(CNN)))
    assert error.value.code == "E661"


def test_weights_are_exact_for_every_type(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for dtype in ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"):
        array = rng.integers(0, 256, 64, dtype=np.uint8)
        array = array % 2 == 0 if dtype == "bool" else array.view(dtype)
        model = text.parse("g (float[1] x) => (float[1] y) { y = Identity(x) }")
        value = ir.Value(
            name="w",
            const_value=ir.Tensor(array),
            type=ir.TensorType(ir.DataType.from_numpy(array.dtype)),
            shape=ir.Shape(array.shape),
        )
        model.graph.register_initializer(value)
        model.graph.outputs.append(value)
        got = compile_c(model)(np.zeros(1, np.float32))[1]
        assert got.tobytes() == array.tobytes(), dtype


BESIDE = {
    "none": set[str](),
    "main": {"m_main.c"},
    "cmake": {"m_main.c", "CMakeLists.txt"},
    "zephyr": {"CMakeLists.txt", "zephyr/module.yml"},
}


@pytest.mark.parametrize("project", BESIDE)
@pytest.mark.parametrize("profile", [False, True])
def test_what_stands_beside_a_library_is_not_compiled_into_it(
    project: str, profile: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []
    monkeypatch.setattr(
        "smelt.runtime.c_library.load_library", lambda files, *_, **__: given.extend(files)
    )
    artifact = compile_text(CNN, name="m", project=project, profile=profile)
    artifact.load()
    assert artifact.files.keys() - given == {*BESIDE[project], "report.json"}
    assert given.count("m_clock.c") == profile
