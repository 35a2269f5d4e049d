"""What a compile of large weights takes: no more than the largest of them, and a fixed part."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from smelt.errors import ExitStatus

MB = 1 << 20
FIXED = 64
"""MB that a compile takes for itself: modules that load late, and buffers to write with."""

OF_THE_LARGEST = 1.5
"""A weight is scaled piece by piece, beside the result."""

IN_MEMORY = 8
"""MB of folded weights that stay in memory here, so that the weights of the quick tests go to files,
too."""

PEAK = """
import sys, threading, time
import numpy, onnx, smelt, smelt.compiler, smelt.passes.registry, smelt.frontends.onnx
from smelt.ir.tensors import constants_on_disk

constants_on_disk.IN_MEMORY = int(sys.argv[3]) << 20

def anonymous():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) // 1024

def watch():
    global peak
    while not done.wait(0.002):
        peak = max(peak, anonymous())

base = peak = anonymous()
done = threading.Event()
thread = threading.Thread(target=watch)
thread.start()
try:
    smelt.save(smelt.optimize(sys.argv[1]), sys.argv[2])
finally:
    done.set()
    thread.join()
print(peak - base)
"""

COMMAND = (sys.executable, "-c", "from smelt.cli.main import run; run()")


class Weights:
    """A model with large weights, in a file beside it."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.path = folder / "m.onnx"
        self.rows = megabytes * MB // 4 // 1024
        self.random = np.random.default_rng(0)
        self.numbers = self.random.standard_normal(99_991, np.float32) * np.float32(0.02)
        self.tensors: list[TensorProto] = []
        self.nodes: list[onnx.NodeProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        with (folder / "m.data").open("wb") as self.file:
            for index in range(8):
                (self.transposed, self.scaled, self.normalized, self.product)[index % 4](str(index))
        inputs = [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1024]),
            helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1024, 1, 1]),
        ]
        graph = helper.make_graph(self.nodes, "g", inputs, self.outputs, self.tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
        onnx.save(model, self.path)

    def weight(self, *shape: int) -> str:
        """A large one, beside the model."""
        tensor = TensorProto(name=f"w{len(self.tensors)}", data_type=TensorProto.FLOAT, dims=shape)
        tensor.data_location = TensorProto.EXTERNAL
        start = self.file.tell()
        # Equal weights would be merged into one.
        np.resize(np.roll(self.numbers, len(self.tensors)), shape).tofile(self.file)
        length = self.file.tell() - start
        for key, value in (("location", "m.data"), ("offset", start), ("length", length)):
            tensor.external_data.add(key=key, value=str(value))
        self.tensors.append(tensor)
        return tensor.name

    def vector(self, *shape: int) -> str:
        """A small one, in the model."""
        array = self.random.random(shape, np.float32) + np.float32(0.5)
        self.tensors.append(numpy_helper.from_array(array, f"v{len(self.tensors)}"))
        return self.tensors[-1].name

    def op(self, kind: str, *inputs: str, last: str = "", **attributes: object) -> str:
        name = last or f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        if last:
            self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
        return name

    def transposed(self, name: str) -> None:
        self.op("MatMul", "x", self.op("Transpose", self.weight(self.rows, 1024)), last=name)

    def scaled(self, name: str) -> None:
        conv = self.op("Conv", "image", self.weight(self.rows, 1024, 1, 1))
        self.op("Mul", conv, self.vector(1, self.rows, 1, 1), last=name)

    def normalized(self, name: str) -> None:
        conv = self.op("Conv", "image", self.weight(self.rows, 1024, 1, 1))
        numbers = [self.vector(self.rows) for _ in range(4)]
        self.op("BatchNormalization", conv, *numbers, last=name)

    def product(self, name: str) -> None:
        weight = self.op("Mul", self.weight(1024, self.rows), self.vector(1, self.rows))
        self.op("MatMul", "x", weight, last=name)


def peak(source: Path, destination: Path) -> int:
    """MB of memory beyond mapped files that it takes to optimize and save ``source``."""
    if not Path("/proc/self/status").exists():
        pytest.skip("this system does not tell how much memory a process takes for itself")
    command = [sys.executable, "-c", PEAK, str(source), str(destination), str(IN_MEMORY)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return int(result.stdout)


@pytest.mark.parametrize(
    "megabytes",
    [pytest.param(size, marks=pytest.mark.slow) for size in (16, 100)],
    ids=lambda size: f"{size}MB",
)
def test_folded_weights_take_no_more_than_the_largest(tmp_path: Path, megabytes: int) -> None:
    source = Weights(tmp_path, megabytes).path
    limit = OF_THE_LARGEST * megabytes + FIXED
    assert peak(source, tmp_path / "o.onnx") <= limit
    assert (tmp_path / "o.onnx.data").stat().st_size >= 8 * megabytes * MB
    assert peak(source, source) <= limit
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith("m")) == [
        "m.data",
        "m.onnx",
        "m.onnx.data",
    ]


def test_weights_inside_a_model_stay_in_its_file(tmp_path: Path) -> None:
    model = onnx.load(Weights(tmp_path, 16).path)
    source = tmp_path / "inside.onnx"
    onnx.save(model, source)
    assert source.stat().st_size >= 8 * 16 * MB
    assert peak(source, source) <= OF_THE_LARGEST * 16 + FIXED


def limited(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


@pytest.fixture(scope="module")
def quarter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with 256 MB of weights."""
    return Weights(tmp_path_factory.mktemp("quarter"), 32).path


@pytest.mark.parametrize("limit", [500, pytest.param(525, marks=pytest.mark.slow), 550])
def test_out_of_memory_is_a_refusal_and_the_old_file_stays(
    quarter: Path, tmp_path: Path, limit: int
) -> None:
    """Wherever it ends: as the weights are mapped, as a module loads, as a fold takes memory.

    With less, glibc may end the process where a library's thread-local data find no room.
    """
    destination = tmp_path / "o.onnx"
    destination.write_bytes(b"old")
    result = subprocess.run(
        [*COMMAND, "optimize", str(quarter), "-o", str(destination)],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: limited(limit * MB),
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert result.returncode == ExitStatus.RESOURCE_LIMIT, result.stderr[-2000:]
    assert result.stderr.startswith("E512 ")
    assert destination.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["o.onnx"]
