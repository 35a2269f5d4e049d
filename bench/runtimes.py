"""Runtimes beside ONNX Runtime, on exported models: time of a run on one thread.

    python -m bench.export_architectures FOLDER --full --width 384    (where torch is installed)
    python -m bench.runtimes FOLDER [--only 'bert*'] [--rounds 20] [--save]

Each model runs in ONNX Runtime as it came, in ONNX Runtime as target ``ort`` writes it, as a
program of target ``host``, and in OpenVINO where that is installed. All take turns in one process;
the least CPU time of the rounds counts, as a ratio to ONNX Runtime on the model as it came. A
result that differs from ONNX Runtime's without optimizations is told and not timed. ``--save``
writes the figures into ``bench/figures.json``.
"""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import importlib.metadata
import importlib.util
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

import smelt
from bench import figures
from bench.ort import SIZES, is_wrong, session_of, tolerance_of
from bench.process import in_own_process
from smelt.ir.shapes.inference import ShapeInference
from smelt.runtime.inputs import random_inputs
from smelt.runtime.latency import interleaved_timings

Run: TypeAlias = Callable[[], Sequence[np.ndarray]]
SOURCE = "ONNX Runtime"
MODEL_SECONDS = 600.0
"""Compiling for `host` included."""


def _ort(path: Path, model: ir.Model, inputs: Sequence[np.ndarray]) -> Run:
    session = smelt.compile(model, target="ort").session(threads=1)
    feeds = dict(zip((v.name for v in model.graph.inputs), inputs, strict=True))
    return lambda: session.run(None, feeds)


def _host(path: Path, model: ir.Model, inputs: Sequence[np.ndarray]) -> Run:
    program = smelt.compile(model, target="host", engine="native")
    return lambda: program(*inputs)


def _openvino(path: Path, model: ir.Model, inputs: Sequence[np.ndarray]) -> Run:
    import openvino

    config = {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY"}
    config |= {"INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.compile_model(str(path), "CPU", config).create_infer_request()
    feeds = dict(enumerate(inputs))
    return lambda: list(request.infer(feeds).values())


RUNTIMES: dict[str, tuple[str, Callable[[Path, ir.Model, Sequence[np.ndarray]], Run]]] = {
    "smelt host": ("smelt-compiler", _host),
    "smelt ort": ("smelt-compiler", _ort),
    "OpenVINO": ("openvino", _openvino),
}
"""By name: the distribution whose version counts, and what prepares a run."""


def judge(path: Path, rounds: int) -> dict[str, float | str]:
    """Return each runtime's time as a ratio to ONNX Runtime on the source, or its error text."""
    source = path.read_bytes()
    model = smelt.load(source)
    inputs = random_inputs(model, SIZES)
    feeds = dict(zip((str(v.name) for v in model.graph.inputs), inputs, strict=True))
    expected = session_of(source, 1, optimized=False).run(None, feeds)
    ShapeInference(model).infer_model()
    session = session_of(source, 1)
    runs: dict[str, Run] = {SOURCE: lambda: session.run(None, feeds)}
    row: dict[str, float | str] = {}
    for name, (_, prepare) in RUNTIMES.items():
        if name == "OpenVINO" and not importlib.util.find_spec("openvino"):
            continue
        try:
            run = prepare(path, smelt.load(source), inputs)
            results = run()
        except Exception as error:  # noqa: BLE001 - each runtime raises types of its own
            row[name] = f"fails: {str(error).splitlines()[0][:100]}"
            continue
        if is_wrong([np.asarray(r) for r in results], expected, tolerance_of(model)):
            row[name] = "wrong"
        else:
            runs[name] = run
    timings = interleaved_timings(list(runs.values()), rounds=rounds, clock=time.process_time)
    least = {name: timing.minimum for name, timing in zip(runs, timings, strict=True)}
    return row | {name: least[name] / least[SOURCE] for name in least if name != SOURCE}


def summary(rows: dict[str, dict[str, float | str]]) -> dict[str, Any]:
    """Return what ``bench/figures.json`` keeps: means over the models that all runtimes run."""
    names = [name for name in RUNTIMES if any(name in row for row in rows.values())]
    right = {m: r for m, r in rows.items() if all(isinstance(r[name], float) for name in names)}
    columns = {name: [float(row[name]) for row in right.values()] for name in names}
    versions = {name: importlib.metadata.version(RUNTIMES[name][0]) for name in names}
    ratios = {model: {n: round(float(row[n]), 3) for n in names} for model, row in right.items()}
    return {
        "date": str(datetime.datetime.now(tz=datetime.UTC).date()),
        "versions": {SOURCE: importlib.metadata.version("onnxruntime"), **versions},
        "means": {
            SOURCE: [1.0, 1.0, 1.0],
            **{name: [geometric_mean(c), min(c), max(c)] for name, c in columns.items()},
        },
        "ratios": ratios,
    }


def _shown(row: dict[str, float | str]) -> str:
    return "; ".join(f"{n} {r:.2f}" if isinstance(r, float) else f"{n} {r}" for n, r in row.items())


def main() -> None:
    """Print a line for each model and the table, and save the figures on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="*")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    rows: dict[str, dict[str, float | str]] = {}
    for path in sorted(options.folder.glob("*.onnx")):
        if fnmatch.fnmatch(path.stem, options.only):
            row = in_own_process(judge, path, options.rounds, timeout=MODEL_SECONDS)
            print(f"{path.stem}: {_shown(row) if isinstance(row, dict) else row}", flush=True)
            if isinstance(row, dict):
                rows[path.stem] = row
    kept = summary(rows)
    print(figures.runtimes(kept))
    if options.save:
        figures.save("runtimes", kept)


if __name__ == "__main__":
    main()
