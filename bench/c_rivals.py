"""C of smelt beside that of onnx2c and emx-onnx-cgen, where their commands are on the PATH.

    python -m bench.c_rivals [--models a,b] [--flags native] [--compiler gcc] [--seconds 1]

One network at a time: each tool generates C, one compiler builds it with the same flags, and all
libraries take turns with ONNX Runtime on one thread, in CPU time. ``memory`` counts the bytes
that a run needs beside weights, inputs and outputs: the arena of smelt, the static variables of
onnx2c, what emx-onnx-cgen asks of the heap.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import re
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from rich.console import Console
from rich.table import Table

import smelt
from bench.c_models import FLAGS, caller, interleaved_timings, session_of
from bench.networks import NETWORKS

SMALL = "tiny_mlp,mnist_cnn,dscnn_kws,resnet8,tiny_transformer,mbv2_035_96,squeezenet"
"""Text of hundreds of megabytes of weights takes compilers minutes, so large networks are left
out unless they are asked for."""


@dataclass(frozen=True)
class Rival:
    """A generator of C: its command, the function of its C, and what its memory is."""

    command: Callable[[str, Path], Sequence[str]]
    entry: str
    writes_stdout: bool
    memory: Callable[[str, Path], int]


def _static_bytes(_: str, library: Path) -> int:
    """Bytes of a library's variables that begin as zeros."""
    sizes = subprocess.run(["size", library], check=True, capture_output=True, text=True).stdout
    return int(sizes.splitlines()[1].split()[2])


def _heap_bytes(text: str, _: Path) -> int:
    """Bytes of all blocks that C asks malloc for; none is freed before the last is there."""
    widths = {"float": 4, "double": 8, "int32_t": 4, "int64_t": 8, "uint8_t": 1, "int8_t": 1}
    blocks = re.findall(r"(\w+) \(\*\w+\)((?:\[\d+\])+) = malloc\(sizeof\(\*\w+\) \* 1\)", text)
    dims = [(kind, [int(dim) for dim in re.findall(r"\d+", shape)]) for kind, shape in blocks]
    return sum(widths[kind] * math.prod(shape) for kind, shape in dims)


RIVALS: Mapping[str, Rival] = {
    "onnx2c": Rival(lambda tool, model: [tool, "-l0", str(model)], "entry", True, _static_bytes),
    "emx-onnx-cgen": Rival(
        lambda tool, model: [
            tool,
            "compile",
            "--model-name=network",
            "--large-weight-threshold=0",
            str(model),
            str(model.with_suffix(".c")),
        ],
        "network",
        False,
        _heap_bytes,
    ),
}


@dataclass
class Build:
    """What came of a tool: CPU seconds of its command and of the compiler, bytes, and a run."""

    generate: float
    compile: float
    memory: int
    run: Callable[[], object]
    arena: np.ndarray | None = None


def spent(command: Sequence[str], folder: Path) -> tuple[float, str]:
    """CPU seconds of a command, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.stdout


def ours(
    model: onnx.ModelProto, folder: Path, cc: Sequence[str], x: np.ndarray, y: np.ndarray
) -> Build:
    path = folder / "model.onnx"
    onnx.save(model, path)
    command = [sys.executable, "-m", "smelt", "compile", str(path)]
    generate, _ = spent([*command, "--target", "c", "-o", "out"], folder)
    memory = smelt.compile(model, target="c").plan.memory
    arena = np.zeros(memory.arena_bytes + memory.alignment, np.uint8)
    sources = ["model.c", "model_weights.c", "-lm", "-o", "model.so"]
    seconds, _ = spent([*cc, *sources], folder / "out")
    run = caller(folder / "out" / "model.so", x, y, arena, memory.alignment)
    return Build(generate, seconds, memory.arena_bytes, run, arena)


def theirs(
    name: str,
    model: onnx.ModelProto,
    folder: Path,
    cc: Sequence[str],
    x: np.ndarray,
    y: np.ndarray,
) -> Build:
    rival, path, library = RIVALS[name], folder / "model.onnx", folder / "model.so"
    typed = onnx.ModelProto.FromString(model.SerializeToString())
    typed.graph.ClearField("value_info")  # those of ONNX's light models are wrong
    onnx.save(onnx.shape_inference.infer_shapes(typed), path)  # emx-onnx-cgen wants each shape
    generate, printed = spent(rival.command(str(shutil.which(name)), path), folder)
    source = folder / "model.c"
    if rival.writes_stdout:
        source.write_text(printed)
    seconds, _ = spent([*cc, str(source), "-lm", "-o", str(library)], folder)
    function = getattr(ctypes.CDLL(str(library)), rival.entry)
    function.restype = None
    given, result = ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data)
    memory = rival.memory(source.read_text(), library)
    return Build(generate, seconds, memory, lambda: function(given, result))


def measure(model: onnx.ModelProto, cc: Sequence[str], seconds: float) -> dict[str, list[str]]:
    """Of each tool: latency over ONNX Runtime, memory, seconds, and the worst difference."""
    session = session_of(model)
    port = session.get_inputs()[0]
    x = np.random.default_rng(0).normal(size=port.shape).astype(np.float32)
    want = session.run(None, {port.name: x})[0]
    y = np.empty_like(want)
    rows, builds = {}, {}
    with tempfile.TemporaryDirectory() as root:
        for name in ("smelt", *filter(shutil.which, RIVALS)):
            folder = Path(root) / name
            folder.mkdir()
            try:
                build = (
                    ours(model, folder, cc, x, y)
                    if name == "smelt"
                    else theirs(name, model, folder, cc, x, y)
                )
            except subprocess.CalledProcessError as error:
                rows[name] = [f"fails: {Path(error.cmd[0]).name} ended with {error.returncode}"]
                continue
            builds[name] = build
            y.fill(np.nan)
            build.run()
            difference = float(np.abs(y - want).max() / np.abs(want).max())
            times = (f"{build.generate:.2f}", f"{build.compile:.2f}")
            rows[name] = ["", f"{build.memory:,}", *times, f"{difference:.1e}"]
        runs = {name: build.run for name, build in builds.items()}
        taken = interleaved_timings(
            {"ort": lambda: session.run(None, {port.name: x}), **runs}, seconds
        )
    for name in builds:
        rows[name][0] = f"{min(taken[name]) / min(taken['ort']):.2f}"
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=re.sub(r"\s+", " ", __doc__ or ""))
    parser.add_argument("--models", default=SMALL)
    parser.add_argument("--flags", default="native", choices=FLAGS)
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("--seconds", type=float, default=1.0)
    given = parser.parse_args()
    columns = ["latency", "memory", "generate s", "compile s", "difference"]
    table = Table("model", "tool", *columns, box=None)
    for model in given.models.split(","):
        cc = [given.compiler, *FLAGS[given.flags], "-fPIC", "-shared"]
        for tool, row in measure(NETWORKS[model](), cc, given.seconds).items():
            table.add_row(model, tool, *row)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
