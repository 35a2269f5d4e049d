"""Speed of compiled C beside ONNX Runtime on one thread, over those of ``bench.networks``.

    python -m bench.c_models [--models a,b] [--flags native,O2] [--compilers gcc,clang]
                             [--seconds 1] [--json FILE]

``--models more`` stands for those of ``bench.more_networks``. All builds of a model and ONNX
Runtime take turns in one process, each call timed in CPU time of its thread. The ratios are those
of the minima and of the medians. Weights are compiled once.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import re
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
import onnx
import onnxruntime
from rich.console import Console
from rich.table import Table

import smelt
from bench.more_networks import MORE
from bench.networks import NETWORKS

FLAGS: Mapping[str, tuple[str, ...]] = {
    "native": ("-O3", "-march=native"),
    "O2": ("-O2",),
    "avx2": ("-O3", "-march=haswell", "-DSMELT_NO_DISPATCH"),
    "strict": ("-std=c99", "-O2"),
}
MOST_CALLS = 2000
Figures: TypeAlias = dict[str, float]


def build(
    files: Mapping[str, bytes], folder: Path, compilers: Sequence[str], flags: Sequence[str]
) -> tuple[dict[str, Path], Figures]:
    """A library for each compiler and set of flags, and the CPU seconds that each part took."""
    for name, data in files.items():
        (folder / name).write_bytes(data)
    seconds = {}
    weights = [compilers[0], "-O1", "-fPIC", "-c", "model_weights.c", "-o", "weights.o"]
    seconds["weights"] = _run(weights, folder)
    libraries = {}
    for compiler in compilers:
        for flag in flags:
            name = f"{compiler} {flag}"
            target = f"lib_{compiler}_{flag}.so"
            command = [compiler, *FLAGS[flag], "-fPIC", "-shared", "model.c", "weights.o"]
            seconds[name] = _run([*command, "-lm", "-o", target], folder)
            libraries[name] = folder / target
    return libraries, seconds


def _run(command: Sequence[str], folder: Path) -> float:
    """CPU seconds of ``command`` and what it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def caller(
    library: Path, x: np.ndarray, y: np.ndarray, arena: np.ndarray, align: int
) -> Callable[[], object]:
    """One run of a library, which reads ``x`` and writes ``y``."""
    run = ctypes.CDLL(str(library)).model_run
    inputs = (ctypes.c_void_p * 1)(x.ctypes.data)
    outputs = (ctypes.c_void_p * 1)(y.ctypes.data)
    memory = ctypes.c_void_p(arena.ctypes.data + -arena.ctypes.data % align)
    return lambda: run(inputs, outputs, memory)


def session_of(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """ONNX Runtime on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def interleaved_timings(
    runs: Mapping[str, Callable[[], object]], seconds: float
) -> dict[str, list[int]]:
    """CPU nanoseconds of each call of each run, one call per turn."""
    times: dict[str, list[int]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    end = time.monotonic() + seconds * len(runs)
    while time.monotonic() < end and len(times["ort"]) < MOST_CALLS:
        for name, run in runs.items():
            run()  # brings the code and weights of this build back into the caches
            begin = time.thread_time_ns()
            run()
            times[name].append(time.thread_time_ns() - begin)
    return times


def measure(
    model: onnx.ModelProto, compilers: Sequence[str], flags: Sequence[str], seconds: float
) -> Figures:
    """Ratios to ONNX Runtime, worst difference, arena and its bound in bytes, CPU seconds."""
    begin = time.process_time()
    artifact = smelt.compile(model, target="c")
    figures = {"seconds smelt": time.process_time() - begin}
    memory = artifact.plan.memory
    figures |= {"arena": memory.arena_bytes, "bound": memory.bound_bytes}
    session = session_of(model)
    port = session.get_inputs()[0]
    x = np.random.default_rng(0).normal(size=port.shape).astype(np.float32)
    want = session.run(None, {port.name: x})[0]
    got = np.empty_like(want)
    arena = np.zeros(memory.arena_bytes + memory.alignment, np.uint8)
    with tempfile.TemporaryDirectory() as folder:
        libraries, spent = build(artifact.files, Path(folder), compilers, flags)
        figures |= {f"seconds {name}": value for name, value in spent.items()}
        runs: dict[str, Callable[[], object]] = {"ort": lambda: session.run(None, {port.name: x})}
        worst = 0.0
        for name, library in libraries.items():
            runs[name] = caller(library, x, got, arena, memory.alignment)
            got.fill(np.nan)
            runs[name]()
            worst = max(worst, float(np.abs(got - want).max() / np.abs(want).max()))
        times = interleaved_timings(runs, seconds)
    figures |= {"difference": worst, "ort ms": min(times["ort"]) / 1e6}
    for name in libraries:
        figures[f"min {name}"] = min(times[name]) / min(times["ort"])
        figures[f"med {name}"] = statistics.median(times[name]) / statistics.median(times["ort"])
    return figures


def show(results: Mapping[str, Figures]) -> Table:
    """Each model as a row, and the geometric means of the ratios."""
    names = [key for key in next(iter(results.values())) if key.startswith(("min ", "med "))]
    others = ["ort ms", "arena", "bound", "seconds smelt", "seconds weights", "difference"]
    table = Table("model", *names, *others, box=None)
    for model, figures in results.items():
        ratios = [f"{figures[name]:.2f}" for name in names]
        table.add_row(model, *ratios, *(f"{figures[name]:.4g}" for name in others))
    means = [[math.log(figures[name]) for figures in results.values()] for name in names]
    table.add_row("geomean", *(f"{math.exp(statistics.mean(mean)):.2f}" for mean in means))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=re.sub(r"\s+", " ", __doc__ or ""))
    parser.add_argument("--models", default=",".join(NETWORKS))
    parser.add_argument("--flags", default="native,O2")
    found = [name for name in ("gcc", "clang") if shutil.which(name)]
    parser.add_argument("--compilers", default=",".join(found))
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    compilers, flags = given.compilers.split(","), given.flags.split(",")
    results = {}
    known = {**NETWORKS, **MORE}
    for name in given.models.replace("more", ",".join(MORE)).split(","):
        results[name] = measure(known[name](), compilers, flags, given.seconds)
        Console(width=200).print(show({name: results[name]}))
        if given.json:
            given.json.write_text(json.dumps(results, indent=1))
    Console(width=200).print(show(results))


if __name__ == "__main__":
    main()
