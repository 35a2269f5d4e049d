"""report.json has the work of each kernel, and its time once a run was measured."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path

import numpy as np
import pytest
from c_library import STRICT, compile_text

from smelt.errors import UsageError
from smelt.runtime.c_library import build
from smelt.targets.c.measure import measure
from smelt.targets.c.report_file import clock_file, read
from smelt.targets.c.saved import open_folder

MODEL = """g (float[4,8] x) => (float[4,3] y, float[4,8] z) {
    w = Constant<value = float[8,3] {1,2,3,1,2,3,1,2,3,1,2,3,1,2,3,1,2,3,1,2,3,1,2,3}>()
    m = MatMul(x, w) y = Softmax(m) z = Identity(x) }"""


def test_the_report_is_in_the_folder() -> None:
    artifact = compile_text(MODEL)
    report = json.loads(artifact.files["report.json"])
    assert report["schema"] == "smelt.c.report/1"
    assert report["weights_bytes"] == artifact.plan.facts["weights_bytes"] > 0
    assert report["arena_bytes"] == artifact.plan.facts["arena_bytes"]
    assert report["macs"] == sum(kernel["macs"] for kernel in report["kernels"]) == 4 * 8 * 3
    product, softmax = report["kernels"]
    assert (product["bytes_read"], product["bytes_written"]) == (4 * (32 + 24), 4 * 12)
    assert softmax["function"].startswith("Softmax")
    assert compile_text(MODEL).files["report.json"] == artifact.files["report.json"]


def test_each_step_reads_the_clock_of_the_caller(tmp_path: Path) -> None:
    """Compiled with all warnings, and with a clock that counts how often it is read."""
    files = dict(compile_text(MODEL, profile=True, project="main").files)
    del files["model_main.c"]
    clock = "#include <stdint.h>\nuint64_t model_clock(void);\nuint64_t model_clock(void)\n"
    files["clock.c"] = f"{clock}{{ static uint64_t t = 0; return ++t; }}\n".encode()
    library = ctypes.CDLL(str(build(files, tmp_path, STRICT)))
    x, y, z = (
        np.ones((4, 8), np.float32),
        np.empty((4, 3), np.float32),
        np.empty((4, 8), np.float32),
    )
    memory = np.zeros(4096, np.uint8)
    arena = memory.ctypes.data + -memory.ctypes.data % 64
    pointers = ctypes.c_void_p * 1, ctypes.c_void_p * 2
    for runs in (1, 2):
        given = pointers[0](x.ctypes.data), pointers[1](y.ctypes.data, z.ctypes.data)
        assert library.model_run(*given, ctypes.c_void_p(arena)) == 0
        assert list((ctypes.c_uint64 * 2).in_dll(library, "model_ticks")) == [runs, runs]
    np.testing.assert_allclose(y.sum(1), 1, rtol=1e-6)


def test_seconds_are_measured_into_the_report(tmp_path: Path) -> None:
    artifact = compile_text(MODEL, profile=True)
    artifact.save(tmp_path)
    x = np.ones((4, 8), np.float32)
    saved = open_folder(tmp_path)
    assert saved is not None
    library = saved.load()
    report = measure(tmp_path, library, [x], rounds=3, seconds=10)  # type: ignore[arg-type]
    assert all(0 <= kernel["seconds"] < 1 for kernel in report["kernels"])
    assert read(tmp_path) == report
    damaged = {**report, "kernels": report["kernels"][:1]}
    (tmp_path / "report.json").write_text(json.dumps(damaged))
    with pytest.raises(UsageError, match="has 2 steps, but its report lists others"):
        measure(tmp_path, library, [x], rounds=1, seconds=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [None, b"", b"[]", b'{"schema": "other", "kernels": []}'])
def test_no_report_is_told(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "report.json").write_bytes(content)
    with pytest.raises(UsageError, match=r"does not hold a report\.json of target 'c'"):
        read(tmp_path)


def test_a_library_that_asks_no_clock_is_not_measured(tmp_path: Path) -> None:
    compile_text(MODEL).save(tmp_path)
    with pytest.raises(UsageError, match="has no clock"):
        measure(tmp_path, None, [], rounds=1, seconds=1)  # type: ignore[arg-type]


def test_a_library_is_not_called_as_its_report() -> None:
    with pytest.raises(UsageError, match="name='report'"):
        compile_text(MODEL, name="report")


def test_the_clock_of_this_machine_counts_nanoseconds(tmp_path: Path) -> None:
    library = ctypes.CDLL(str(build({"c.c": clock_file("c")}, tmp_path, STRICT)))
    library.c_clock.restype = ctypes.c_uint64
    assert 0 <= library.c_clock() <= library.c_clock()
