"""Models in int8 by smelt and by ONNX Runtime's tools: bytes, error, and interleaved times.

    python -m bench.precision_int8 MODEL DATA.npz [--seconds 2] [--activations auto]

ONNX Runtime's tools run with their defaults and with five other settings, on the same calibration
samples. Then smelt runs within the error of the defaults, and within the least error of the tools.
Errors are relative (``smelt.precision.error``), on samples held out, in ONNX Runtime on one
thread. Times are minima, interleaved over all models.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process
from rich.console import Console
from rich.table import Table

import smelt
from smelt.precision.batches import Sample
from smelt.precision.data import Data, calibration_data
from smelt.precision.error import relative_error
from smelt.runtime.array_files import read_arrays

INT8 = {"activation_type": QuantType.QInt8, "weight_type": QuantType.QInt8}
STATIC: dict[str, dict[str, object]] = {
    "defaults": {},
    "per channel": {"per_channel": True},
    "uint8, per channel": {"per_channel": True, "activation_type": QuantType.QUInt8},
    "percentile": {"per_channel": True, "calibrate_method": CalibrationMethod.Percentile},
    "entropy": {"per_channel": True, "calibrate_method": CalibrationMethod.Entropy},
}
"""Settings of quantize_static; ``dynamic`` is quantize_dynamic of products."""


class Reader(CalibrationDataReader):
    """Gives the calibration samples to ONNX Runtime's tools, one at a time, by input name."""

    def __init__(self, names: Sequence[str], samples: Sequence[Sample]) -> None:
        self.left = iter([dict(zip(names, sample, strict=True)) for sample in samples])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.left, None)


def by_tools(source: Path, target: Path, names: Sequence[str], data: Data, setting: str) -> None:
    """Write the model that ONNX Runtime's tools make in one setting."""
    if setting == "dynamic":
        quantize_dynamic(source, target, ["MatMul", "Gemm"], weight_type=QuantType.QInt8)
        return
    options = {**INT8, **STATIC[setting]}
    quantize_static(source, target, Reader(names, data.calibration), **options)


class Run:
    """A model in ONNX Runtime on one thread: its outputs on the samples held out, and ``best``, the
    least seconds of a run of the first one.
    """

    def __init__(self, path: Path, names: Sequence[str], data: Data) -> None:
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 4
        self.session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.feeds = [dict(zip(names, sample, strict=True)) for sample in data.held_out]
        outputs = [output.name for output in self.session.get_outputs()]
        self.results = [
            dict(zip(outputs, self.session.run(None, feed), strict=True)) for feed in self.feeds
        ]
        self.bytes, self.best = path.stat().st_size, float("inf")

    def once(self) -> None:
        """Time one run of the first sample."""
        start = time.perf_counter()
        self.session.run(None, self.feeds[0])
        self.best = min(self.best, time.perf_counter() - start)


def opened(make: Callable[[], object], path: Path, names: Sequence[str], data: Data) -> Run | str:
    """Return the model that ``make`` writes to ``path``, or the first line of its error."""
    try:
        make()
        return Run(path, names, data)
    except Exception as error:  # noqa: BLE001 - the tools raise whatever goes wrong
        return f"{type(error).__name__}: {(str(error).strip() or '-').splitlines()[0][:90]}"


def measure(given: argparse.Namespace, folder: Path) -> Table:
    """Return the table of one model."""
    arrays = read_arrays(given.data)
    model = smelt.load(given.model)
    data = calibration_data(model, arrays)
    names = [str(value.name) for value in model.graph.inputs]
    source, prepared = Path(given.model), folder / "prepared.onnx"
    quant_pre_process(source, prepared, skip_symbolic_shape=True)
    reference = Run(source, names, data)
    runs: dict[str, Run | str] = {"float": reference}
    for setting in (*STATIC, "dynamic"):
        path = folder / f"{setting}.onnx"
        make = partial(by_tools, prepared, path, names, data, setting)
        runs[f"tools: {setting}"] = opened(make, path, names, data)
    errors = {
        name: relative_error(reference.results, run.results)
        for name, run in runs.items()
        if isinstance(run, Run)
    }
    tools = {name: error for name, error in errors.items() if name.startswith("tools: ")}
    seconds: dict[str, float] = {}
    for label in dict.fromkeys(("tools: defaults", min(tools, key=tools.__getitem__))):
        if label not in tools:
            continue
        name, path = f"smelt within {label[7:]}", folder / f"smelt {label[7:]}.onnx"
        start = time.perf_counter()

        def quantized(path: Path = path, error: float = tools[label]) -> None:
            result = smelt.quantize(
                given.model, arrays, within=error, activations=given.activations
            )
            onnx.save(smelt.to_proto(result.model), path)

        runs[name] = opened(quantized, path, names, data)
        seconds[name] = time.perf_counter() - start
    turns = [run for run in runs.values() if isinstance(run, Run)]
    end = time.perf_counter() + given.seconds * len(turns)
    while time.perf_counter() < end:
        for run in turns:
            run.once()
    table = Table("model", "bytes", "of float", "error", "ms", "of float", "search s")
    for name, run in runs.items():
        if isinstance(run, str):
            table.add_row(name, run)
            continue
        error = relative_error(reference.results, run.results)
        row = [f"{run.bytes:,}", f"{run.bytes / reference.bytes:.3f}", f"{100 * error:.3f} %"]
        row += [f"{1000 * run.best:.2f}", f"{run.best / reference.best:.2f}"]
        table.add_row(name, *row, f"{seconds[name]:.0f}" if name in seconds else "")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--activations", default="auto")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Console(width=140).print(measure(given, Path(folder)))


if __name__ == "__main__":
    main()
