"""The project ``session``: a shared library whose C interface has names, shapes and errors."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

import smelt
from smelt.errors import UsageError
from smelt.ir import text

ROOT = Path(__file__).parents[3]
HEADER = '<opset_import: ["": 20], ir_version: 10> '
WEIGHTS = np.linspace(-1, 1, 8 * 4, dtype=np.float32).reshape(8, 4)
MODEL = f"""{HEADER} g (float[B,8] x, float[B,4] c) => (float[B,4] y, float total)
<float[8,4] w = {{{", ".join(map(str, WEIGHTS.ravel()))}}}> {{
    p = MatMul(x, w)
    y = Add(p, c)
    total = ReduceSum<keepdims=0>(y)
}}"""
NONZERO = HEADER + "g (float[6] x) => (int64[1,N] places) { places = NonZero(x) }"
MOST_RANK = 16


class Tensor(ctypes.Structure):
    """``smelt_tensor``."""

    _fields_ = (
        ("type", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.c_int64 * MOST_RANK),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
    )


class Port(ctypes.Structure):
    """``smelt_port``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("type", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.c_int64 * MOST_RANK),
        ("least", ctypes.c_int64 * MOST_RANK),
        ("most", ctypes.c_int64 * MOST_RANK),
        ("dims", ctypes.c_char_p * MOST_RANK),
    )


Tensors = ctypes.POINTER(Tensor)


class Model(ctypes.Structure):
    """``smelt_model``."""

    _fields_ = (
        ("version", ctypes.c_int32),
        ("threads", ctypes.c_int32),
        ("name", ctypes.c_char_p),
        ("inputs", ctypes.c_int32),
        ("outputs", ctypes.c_int32),
        ("input", ctypes.POINTER(Port)),
        ("output", ctypes.POINTER(Port)),
        ("open", ctypes.CFUNCTYPE(ctypes.c_void_p)),
        ("run", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, Tensors, Tensors)),
        ("release", ctypes.CFUNCTYPE(None, Tensors)),
        ("close", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("message", ctypes.CFUNCTYPE(ctypes.c_char_p)),
    )


class Session:
    """A session of the library in ``folder``, called as from C."""

    def __init__(self, folder: Path, name: str = "m") -> None:
        self.library = ctypes.CDLL(str(folder / f"lib{name}.so"))
        self.library.smelt_session_model.restype = ctypes.POINTER(Model)
        self.model = self.library.smelt_session_model().contents
        self.session = self.model.open()

    def run(self, *arrays: np.ndarray, **changes: object) -> int:
        kinds = {"f": 1, "d": 11, "l": 7}
        inputs = (Tensor * len(arrays))()
        for tensor, array in zip(inputs, arrays, strict=True):
            tensor.type, tensor.rank = kinds[array.dtype.char], array.ndim
            tensor.shape[: array.ndim] = array.shape
            tensor.data = array.ctypes.data
        self.outputs = (Tensor * self.model.outputs)()
        for field, value in changes.items():
            setattr(self.outputs[0], field, value)
        return self.model.run(self.session, inputs, self.outputs)

    def result(self, number: int, dtype: type = np.float32) -> np.ndarray:
        output = self.outputs[number]
        shape = tuple(output.shape[: output.rank])
        count = int(np.prod(shape))
        data = ctypes.string_at(output.data, count * np.dtype(dtype).itemsize)
        return np.frombuffer(data, dtype).reshape(shape)


def _compiled(folder: Path, source: str = MODEL, **options: object) -> Path:
    options = {"dims": {"B": (1, 6)}, "name": "m", **options}
    smelt.compile(text.parse(source), target="c", project="session", **options).save(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _compiled(tmp_path_factory.mktemp("session"), threads=2)


def _inputs(rows: int) -> tuple[np.ndarray, np.ndarray]:
    x = np.arange(rows * 8, dtype=np.float32).reshape(rows, 8) / 7
    return x, np.ones((rows, 4), np.float32)


def test_a_session_describes_and_runs_its_model(folder) -> None:
    session = Session(folder)
    model = session.model
    assert (model.version, model.threads, model.name) == (1, 2, b"m")
    x = model.input[0]
    assert (x.name, x.type, x.rank, x.shape[:2]) == (b"x", 1, 2, [-1, 8])
    assert (x.dims[:2], x.least[:2], x.most[:2]) == ([b"B", None], [1, 8], [6, 8])
    assert [model.output[i].name for i in range(model.outputs)] == [b"y", b"total"]
    for rows in (1, 6, 3):
        x, c = _inputs(rows)
        assert session.run(x, c) == 0
        expected = x @ WEIGHTS + c
        np.testing.assert_allclose(session.result(0), expected, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(session.result(1), expected.sum(), rtol=1e-4)
        assert session.result(1).shape == ()
        for output in session.outputs:
            model.release(output)
            assert output.data is None
    model.close(session.session)


def test_any_name_reaches_the_caller(tmp_path) -> None:
    model = text.parse(HEADER + "g (float[2] x) => (float[2] y) { y = Relu(x) }")
    names = ('"; \\ ??/ %s */ \x01\x7f', "caf\u00e9 \U0001f600")
    for value, name in zip((*model.graph.inputs, *model.graph.outputs), names, strict=True):
        value.name = name
    smelt.compile(model, target="c", project="session", name="m").save(tmp_path)
    session = Session(tmp_path)
    model_of = session.model
    assert (model_of.input[0].name, model_of.output[0].name) == tuple(n.encode() for n in names)
    assert session.run(np.array([-1, 2], np.float32)) == 0
    assert session.result(0).tolist() == [0, 2]
    assert session.run(np.zeros(3, np.float32)) == 1
    assert names[0].encode() in session.model.message()


def test_results_go_to_memory_of_the_caller(folder) -> None:
    session = Session(folder)
    memory = np.zeros(8, np.float32)
    x, c = _inputs(2)
    assert session.run(x, c, data=memory.ctypes.data, bytes=memory.nbytes) == 0
    np.testing.assert_allclose(memory.reshape(2, 4), x @ WEIGHTS + c, rtol=1e-5, atol=1e-5)
    assert session.run(x, c, data=memory.ctypes.data, bytes=memory.nbytes - 1) == 1
    assert session.model.message() == b"output y needs 32 bytes, not 31"


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (np.ones((2, 8)), b"input x has type 11 and rank 2, not 1 and 2"),
        (np.ones(8, np.float32), b"input x has type 1 and rank 1, not 1 and 2"),
        (np.ones((2, 7), np.float32), b"dim 1 of input x is 7, not within 8 and 8"),
        (np.ones((7, 8), np.float32), b"dim 0 of input x is 7, not within 1 and 6"),
        (np.ones((3, 8), np.float32), b"dim 0 of input"),
    ],
)
def test_wrong_inputs_are_refused(folder, x, words) -> None:
    session = Session(folder)
    assert session.run(x, _inputs(2)[1]) == 1
    assert session.model.message().startswith(words)
    assert not session.outputs[0].data


def test_sizes_that_the_data_decides(tmp_path) -> None:
    session = Session(_compiled(tmp_path, NONZERO, dims={"N": (0, 6)}))
    assert session.model.output[0].shape[:2] == [1, -1]
    for x in ([0, 1, 0, 2, 0, 3], [0] * 6):
        assert session.run(np.array(x, np.float32)) == 0
        np.testing.assert_array_equal(session.result(0, np.int64), np.nonzero(np.array(x)))


def test_what_a_session_cannot_have_is_refused(tmp_path) -> None:
    with pytest.raises(UsageError, match="weights in its library"):
        _compiled(tmp_path, weights="bin")
    with pytest.raises(UsageError, match="nobody defines the clock"):
        _compiled(tmp_path, profile=True)
    model = text.parse(HEADER + "g (float[N] x) => (float[N] y) { y = Relu(x) }")
    for value in (*model.graph.inputs, *model.graph.outputs):
        value.shape = ir.Shape(["2*B"])
    with pytest.raises(UsageError, match="no input has the size B"):
        smelt.compile(model, target="c", project="session", dims={"B": (1, 3)})


def test_a_machine_without_a_compiler_opens_the_folder(folder) -> None:
    program = (
        "import os, sys, numpy as np, smelt\n"
        "os.environ['PATH'] = ''\n"
        "os.environ.pop('CC', None)\n"
        f"run = smelt.load_artifact({str(folder)!r})\n"
        "y, total = run(np.ones((2, 8), np.float32), np.zeros((2, 4), np.float32))\n"
        "print(*y[0])\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    np.testing.assert_allclose(
        np.array(run.stdout.split(), np.float32), WEIGHTS.sum(0), rtol=1e-5, atol=1e-5
    )


def test_the_example_in_cpp(folder, tmp_path) -> None:
    source = ROOT / "examples" / "session" / "classify.cpp"
    program = tmp_path / "classify"
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", f"-I{folder}", "-ldl", "-pthread"]
    subprocess.run(["g++", source, *flags, "-o", program], check=True)
    run = subprocess.run(
        [program, folder / "libm.so", "3"], capture_output=True, text=True, check=True
    )
    y = np.array(run.stdout.split("\n")[0].split()[1:], np.float32).reshape(3, 4)
    np.testing.assert_allclose(y, np.ones((3, 8)) @ WEIGHTS + 1, rtol=1e-4, atol=1e-4)
    wrong = subprocess.run(
        [program, folder / "libm.so", "9"], capture_output=True, text=True, check=False
    )
    assert (wrong.returncode, wrong.stderr) == (1, "dim 0 of input x is 9, not within 1 and 6\n")
