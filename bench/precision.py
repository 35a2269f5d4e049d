"""Models in float16 by smelt and by the converters that people use: error, casts, bytes, seconds.

    python -m bench.precision FOLDER... [--tools smelt,onnxruntime,auto] [--limit 60] [--json FILE]

Each tool converts each .onnx file of the folders in a process of its own, with float32 inputs and
outputs. Errors are those of the outputs relative to the float32 model on the same inputs: the norm
of the difference over the norm, if each result in float16 is rounded as hardware for float16 does.
``smelt twice`` is ``smelt`` on the optimized model, and ``auto`` is auto_mixed_precision of
onnxconverter-common, which stops after ``--limit`` seconds. Needs onnxconverter-common for ``auto``
only.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
from rich.console import Console
from rich.table import Table

import smelt
from bench.process import in_own_process
from smelt.compiler import optimize_model
from smelt.frontends.onnx.load import load
from smelt.passes.base import PassContext
from smelt.precision.emulate import round_each_result
from smelt.precision.error import relative_error
from smelt.precision.half_inputs import half_feeds
from smelt.runtime.interface import interface_of
from smelt.runtime.onnxruntime import OnnxRuntime

Feeds: TypeAlias = list[dict[str, np.ndarray]]
TOLERANCE = 1e-3
"""The relative and absolute tolerance that auto_mixed_precision is given."""


def feeds_of(path: Path) -> Feeds:
    """Return random inputs for the model by name."""
    model = load(path, as_is=True)
    names = [port.name for port in interface_of(model).inputs]
    return [
        {n: v for n, v in zip(names, feed, strict=True) if isinstance(v, np.ndarray)}
        for feed in half_feeds(model, None, None)
    ]


def by_smelt(path: Path, feeds: Feeds) -> onnx.ModelProto:
    model = smelt.load(path)
    optimize_model(model, half="float16", samples=feeds)
    return smelt.to_proto(model)


def by_smelt_twice(path: Path, feeds: Feeds) -> onnx.ModelProto:
    optimized = smelt.load(path)
    optimize_model(optimized)
    model = smelt.load(smelt.to_proto(optimized))
    optimize_model(model, half="float16", samples=feeds)
    return smelt.to_proto(model)


def by_onnxruntime(path: Path, feeds: Feeds) -> onnx.ModelProto:
    from onnxruntime.transformers.float16 import convert_float_to_float16

    return convert_float_to_float16(onnx.load(path), keep_io_types=True)


def by_onnxconverter(path: Path, feeds: Feeds) -> onnx.ModelProto:
    from onnxconverter_common import float16

    return float16.convert_float_to_float16(onnx.load(path), keep_io_types=True)


def by_auto_mixed_precision(path: Path, feeds: Feeds) -> onnx.ModelProto:
    from onnxconverter_common import auto_mixed_precision

    return auto_mixed_precision.auto_convert_mixed_precision(
        onnx.load(path), feeds[0], rtol=TOLERANCE, atol=TOLERANCE, keep_io_types=True
    )


TOOLS: Mapping[str, Callable[[Path, Feeds], onnx.ModelProto]] = {
    "smelt": by_smelt,
    "smelt twice": by_smelt_twice,
    "onnxruntime": by_onnxruntime,
    "onnxconverter": by_onnxconverter,
    "auto": by_auto_mixed_precision,
}


def outputs_of(model: Path | bytes, feeds: Feeds) -> list[dict[str, np.ndarray]]:
    """Return the outputs by name for each of ``feeds``."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    source = model if isinstance(model, bytes) else str(model)
    session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return [dict(zip(names, session.run(names, feed), strict=True)) for feed in feeds]


def rounded_outputs_of(proto: onnx.ModelProto, feeds: Feeds) -> list[dict[str, np.ndarray]]:
    """Return the outputs if each result in float16 is rounded, as hardware for float16 does.

    On a CPU, ONNX Runtime computes in float32 and leaves out the rounding between two nodes.
    """
    del proto.graph.value_info[:]
    model = ir.serde.deserialize_model(proto)
    PassContext.of(model)
    round_each_result(model, ir.DataType.FLOAT16)
    model.graph.sort()
    run = OnnxRuntime(model)
    names = [output.name or "" for output in model.graph.outputs]
    results = [run(*(feed.get(port.name) for port in run.interface.inputs)) for feed in feeds]
    return [dict(zip(names, map(np.asarray, each), strict=True)) for each in results]


def measured(tool: str, path: Path, feeds: Feeds) -> dict[str, Any]:
    """Return the figures of one tool on one model; raises what the tool or the session raises."""
    started = time.perf_counter()
    proto = TOOLS[tool](path, feeds)
    seconds = time.perf_counter() - started
    data = proto.SerializeToString()
    reference, results = outputs_of(path, feeds), outputs_of(data, feeds)
    return {
        "error": relative_error(reference, rounded_outputs_of(proto, feeds)),
        "error on this CPU": relative_error(reference, results),
        "casts": sum(node.op_type == "Cast" for node in proto.graph.node),
        "bytes": len(data),
        "seconds": seconds,
    }


def rows_of(paths: Sequence[Path], tools: Sequence[str], limit: float) -> list[dict[str, Any]]:
    """Return one row per model with the figures, or the first words of an error, per tool."""
    rows = []
    for path in paths:
        feeds = feeds_of(path)
        row: dict[str, Any] = {"model": path.stem}
        for tool in tools:
            answer = in_own_process(measured, tool, path, feeds, timeout=limit)
            row[tool] = answer if isinstance(answer, dict) else {"failed": answer}
        rows.append(row)
        print(json.dumps(row), flush=True)
    return rows


def text_of(figures: Mapping[str, Any]) -> str:
    """Return the figures of one tool in words."""
    if "failed" in figures:
        return str(figures["failed"]).strip().splitlines()[0][:40]
    return f"{figures['error']:.1e}  {figures['casts']:3}  {figures['seconds']:.1f} s"


def main() -> None:
    """Print a row per model, and how often smelt has the smaller error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--tools", default="smelt,smelt twice,onnxruntime")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for each tool")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    tools = arguments.tools.split(",")
    paths = [path for folder in arguments.folders for path in sorted(folder.glob("*.onnx"))]
    rows = rows_of(paths, tools, arguments.limit)
    table = Table("model", *tools)
    for row in rows:
        table.add_row(row["model"], *(text_of(row[tool]) for tool in tools))
    Console(width=160).print(table)
    for rival in tools[1:]:
        pairs = [(row[tools[0]], row[rival]) for row in rows]
        both = [(a["error"], b["error"]) for a, b in pairs if "error" in a and "error" in b]
        print(
            f"{tools[0]} against {rival}: smaller error on {sum(a < b for a, b in both)} of "
            f"{len(both)}, over twice its error on {sum(a > 2 * b for a, b in both)}; "
            f"{rival} fails on {sum('failed' in b for _, b in pairs)}, infinite on "
            f"{sum(b == math.inf for _, b in both)}; {tools[0]} fails on "
            f"{sum('failed' in a for a, _ in pairs)}"
        )
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
