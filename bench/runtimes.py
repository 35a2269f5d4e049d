"""Runtimes beside ONNX Runtime, on exported models: time of a run.

    python -m bench.export_architectures FOLDER --full --width 384    (where torch is installed)
    python -m bench.runtimes FOLDER [--only 'bert*'] [--rounds 20] [--threads 1] [--save]
    python -m bench.runtimes FOLDER --users    (FOLDER has the exports of ``bench.users``)

Each model runs in ONNX Runtime as it came, in ONNX Runtime as target ``ort`` writes it without and
with native regions, as a program of target ``host``, and in OpenVINO where that is installed. All
take turns in one process; the least time of the rounds counts, as a ratio to ONNX Runtime on the
model as it came: CPU time on one thread, elapsed time on several. A result that differs from ONNX
Runtime's without optimizations is told and not timed. ``--save`` writes the figures into
``bench/figures.json``.
"""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import importlib.metadata
import importlib.util
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import geometric_mean
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

import smelt
from bench import figures
from bench.ort import SIZES, is_wrong, session_of, tolerance_of
from bench.process import in_own_process
from bench.users import paths
from smelt.ir.shapes.inference import ShapeInference
from smelt.runtime.inputs import random_inputs
from smelt.runtime.latency import interleaved_timings

Run: TypeAlias = Callable[[Sequence[np.ndarray]], Sequence[np.ndarray]]
Row: TypeAlias = dict[str, float | str]
SOURCE = "ONNX Runtime"
MODEL_SECONDS = 900.0
"""Compiling included."""


@dataclass(frozen=True)
class Case:
    """An exported model, how many threads run it, and the largest size of each of its dims."""

    path: Path
    threads: int
    bounds: Mapping[str, int]

    def model(self) -> ir.Model:
        return smelt.load(self.path.read_bytes())


def _run_of(session: Any) -> Run:
    """Return a function from inputs to the results of a session of ONNX Runtime."""
    names = [value.name for value in session.get_inputs()]
    return lambda inputs: session.run(None, dict(zip(names, inputs, strict=True)))


def _ort(case: Case) -> Run:
    return _run_of(smelt.compile(case.model(), target="ort").session(threads=case.threads))


def _regions(case: Case) -> Run:
    """Return a run with native regions, whether they pay or not."""
    dims: dict[str, int | tuple[int, int]] = {
        name: (1, size) if size > 1 else 1 for name, size in case.bounds.items()
    }
    artifact = smelt.compile_with_regions(
        case.model(), dims=dims, threads=case.threads, measure=False
    )
    return _run_of(artifact.session(threads=case.threads))


def _host(case: Case) -> Run:
    program = smelt.compile(case.model(), target="host", engine="native", threads=case.threads)
    return lambda inputs: program(*inputs)


def _openvino(case: Case) -> Run:
    import openvino

    config = {"INFERENCE_NUM_THREADS": case.threads, "PERFORMANCE_HINT": "LATENCY"}
    config |= {"INFERENCE_PRECISION_HINT": "f32"}
    request = openvino.compile_model(str(case.path), "CPU", config).create_infer_request()
    return lambda inputs: list(request.infer(dict(enumerate(inputs))).values())


RUNTIMES: dict[str, tuple[str, Callable[[Case], Run]]] = {
    "smelt host": ("smelt-compiler", _host),
    "smelt ort": ("smelt-compiler", _ort),
    "native regions": ("smelt-compiler", _regions),
    "OpenVINO": ("openvino", _openvino),
}
"""By name: the distribution whose version counts, and what prepares a run."""


def judge(path: Path, rounds: int, runs: Sequence[Mapping[str, int]], threads: int) -> list[Row]:
    """Return each runtime's time as a ratio to ONNX Runtime on the source, or its error text.

    There is a row for each of ``runs``, the sizes of dims; each runtime compiles the model once.
    """
    source = path.read_bytes()
    model = smelt.load(source)
    shapes = [value.shape for value in model.graph.inputs if value.shape is not None]
    dims = {str(dim.value) for shape in shapes for dim in shape if isinstance(dim, ir.SymbolicDim)}
    case = Case(path, threads, {dim: max(run[dim] for run in runs) for dim in sorted(dims)})
    ready: dict[str, Run | str] = {SOURCE: _run_of(session_of(source, threads))}
    for name, (_, prepare) in RUNTIMES.items():
        if name == "OpenVINO" and not importlib.util.find_spec("openvino"):
            continue
        try:
            ready[name] = prepare(case)
        except Exception as error:  # noqa: BLE001 - each runtime raises types of its own
            ready[name] = _failure(error)
    plain = _run_of(session_of(source, threads, optimized=False))
    ShapeInference(model).infer_model()
    tolerance = tolerance_of(model)
    return [
        _row(ready, random_inputs(smelt.load(source), sizes), plain, tolerance, rounds, threads)
        for sizes in runs
    ]


def _row(
    ready: Mapping[str, Run | str],
    inputs: Sequence[np.ndarray],
    plain: Run,
    tolerance: float,
    rounds: int,
    threads: int,
) -> Row:
    """Return the row of one run: ``plain`` gives the right results."""
    expected = list(plain(inputs))
    row: Row = {name: run for name, run in ready.items() if isinstance(run, str)}
    right: dict[str, Callable[[], object]] = {}
    for name, run in ready.items():
        if isinstance(run, str):
            continue
        try:
            results = [np.asarray(result) for result in run(inputs)]
        except Exception as error:  # noqa: BLE001 - each runtime raises types of its own
            row[name] = _failure(error)
            continue
        if is_wrong(results, expected, tolerance):
            row[name] = "wrong"
        else:
            right[name] = partial(run, inputs)
    clock = time.process_time if threads == 1 else time.perf_counter
    timings = interleaved_timings(list(right.values()), rounds=rounds, clock=clock)
    least = {name: timing.minimum for name, timing in zip(right, timings, strict=True)}
    return row | {name: least[name] / least[SOURCE] for name in least if name != SOURCE}


def _failure(error: Exception) -> str:
    return f"fails: {str(error).splitlines()[0][:100]}"


def summary(rows: dict[str, Row]) -> dict[str, Any]:
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


def _shown(row: Row) -> str:
    return "; ".join(f"{n} {r:.2f}" if isinstance(r, float) else f"{n} {r}" for n, r in row.items())


def _cases(
    folder: Path, only: str, users: bool
) -> Iterator[tuple[str, Path, Sequence[Mapping[str, int]]]]:
    """Yield a name, the file and the sizes of runs: those of ``bench.users``, or ``SIZES``."""
    if users:
        for kind, export, exporter, path in paths(folder, only):
            if path.exists():
                yield f"{kind} {exporter}", path, export.runs
        return
    for path in sorted(folder.glob("*.onnx")):
        if fnmatch.fnmatch(path.stem, only):
            yield path.stem, path, [SIZES]


def main() -> None:
    """Print a line for each run and the table, and save the figures on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="*")
    parser.add_argument("--users", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    rows: dict[str, Row] = {}
    for model, path, runs in _cases(options.folder, options.only, options.users):
        found = in_own_process(
            judge, path, options.rounds, runs, options.threads, timeout=MODEL_SECONDS
        )
        if isinstance(found, str):
            print(f"{model}: {found}", flush=True)
            continue
        for sizes, row in zip(runs, found, strict=True):
            dims = (f"{dim}={size}" for dim, size in sizes.items() if options.users)
            name = " ".join([model, *dims])
            print(f"{name}: {_shown(row)}", flush=True)
            rows[name] = row
    kept = summary(rows) | {"threads": options.threads}
    print(figures.runtimes(kept))
    if options.save:
        figures.save("runtimes", kept)


if __name__ == "__main__":
    main()
