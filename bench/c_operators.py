"""Speed of compiled C beside ONNX Runtime on one thread, one operator at a time.

    python -m bench.c_operators [--only REGEX] [--builds gcc:native,gcc:O2] [--seconds 0.1]
                                [--above 1.3] [--json FILE]

The rows are those of ``bench.operator_cases``. ONNX Runtime has its inputs and outputs bound, and
takes turns with the builds in one process; the figures are ratios of the least CPU times.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
from rich.console import Console
from rich.table import Table

import smelt
from bench.c_models import Figures, build, interleaved_timings, session_of
from bench.operator_cases import CASES, Case
from bench.process import in_own_process


def bound(
    session: onnxruntime.InferenceSession, fed: dict[str, np.ndarray]
) -> tuple[Callable[[], object], list[np.ndarray]]:
    """A run that writes the same arrays each time, and the arrays."""
    results = [np.array(each) for each in session.run(None, fed)]
    binding = session.io_binding()
    for name, array in fed.items():
        value = onnxruntime.OrtValue.ortvalue_from_numpy(array)
        binding.bind_ortvalue_input(name, value)
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(each) for each in results]
    for port, value in zip(session.get_outputs(), values, strict=True):
        binding.bind_ortvalue_output(port.name, value)
    return lambda: session.run_with_iobinding(binding), results


def caller(
    library: Path, fed: list[np.ndarray], results: list[np.ndarray], arena: np.ndarray, align: int
) -> Callable[[], object]:
    """One run of a library over arrays in the order of its model."""
    run = ctypes.CDLL(str(library)).model_run
    inputs = (ctypes.c_void_p * len(fed))(*(each.ctypes.data for each in fed))
    outputs = (ctypes.c_void_p * len(results))(*(each.ctypes.data for each in results))
    memory = ctypes.c_void_p(arena.ctypes.data + -arena.ctypes.data % align)
    return lambda: run(inputs, outputs, memory)


def measure(case: Case, builds: list[tuple[str, str]], seconds: float) -> Figures:
    """Ratios to ONNX Runtime by build, its milliseconds, and the largest difference."""
    model, fed = case.model()
    artifact = smelt.compile(model, target="c")
    memory = artifact.plan.memory
    run, want = bound(session_of(model), fed)
    runs = {"ort": run}
    arena = np.zeros(memory.arena_bytes + memory.alignment, np.uint8)
    inputs = [fed[port.name] for port in model.graph.input]
    got = [np.zeros_like(each) for each in want]
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for compiler, flag in builds:
            libraries, _ = build(artifact.files, Path(folder), [compiler], [flag])
            (name, library), *_ = libraries.items()
            runs[name] = caller(library, inputs, got, arena, memory.alignment)
            for each in got:
                each.fill(0)
            runs[name]()
            worst = max(worst, *(_apart(*pair) for pair in zip(got, want, strict=True)))
        times = interleaved_timings(runs, seconds)
    figures = {name: min(times[name]) / min(times["ort"]) for name in runs if name != "ort"}
    return figures | {"ort us": min(times["ort"]) / 1e3, "apart": worst}


def _apart(got: np.ndarray, want: np.ndarray) -> float:
    """The largest difference, in parts of the largest number."""
    a, b = (np.where(np.isfinite(x), x, 0).astype(float) for x in (got, want))
    return float(np.abs(a - b).max(initial=0) / max(np.abs(b).max(initial=0), 1e-9))


def main() -> None:
    parser = argparse.ArgumentParser(description=re.sub(r"\s+", " ", __doc__ or ""))
    parser.add_argument("--only", default="")
    found = [name for name in ("gcc", "clang") if shutil.which(name)]
    parser.add_argument(
        "--builds", default=",".join(f"{c}:{f}" for c in found for f in ("native", "O2"))
    )
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--above", type=float, default=0.0)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    builds = [tuple(each.split(":")) for each in given.builds.split(",")]
    results: dict[str, Figures | str] = {}
    table = Table("operator", *(" ".join(each) for each in builds), "ort us", "apart", box=None)
    for case in CASES:
        if not re.search(given.only, case.name):
            continue
        figures = results[case.name] = in_own_process(measure, case, builds, given.seconds)
        if isinstance(figures, str):
            row = [figures]
        else:
            row = [f"{value:.3g}" for value in figures.values()]
        print(case.name, *row, sep=" | ", flush=True)
        if isinstance(figures, str) or max(list(figures.values())[: len(builds)]) >= given.above:
            table.add_row(case.name, *row)
        if given.json:
            given.json.write_text(json.dumps(results, indent=1))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
