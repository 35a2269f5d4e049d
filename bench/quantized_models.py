"""Quantized networks in C beside our own floats and ONNX Runtime's int8, one thread.

    python -m bench.quantized_models [--models a,b] [--compiler gcc] [--flags native]
                                     [--activations uint8] [--tensors] [--dynamic] [--seconds 1]

Networks of ``bench.networks`` are quantized by ONNX Runtime's tools, weights int8 with a scale for
each channel, or for each tensor; ``--dynamic``: activations as the model runs. Times are minima of
CPU time in turns. On CPUs without VNNI, ONNX Runtime multiplies uint8 by int8 in 16 bits that
saturate, so its results are off where ours aren't.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import onnx.version_converter
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from rich.console import Console
from rich.table import Table

import smelt
from bench.c_models import build, caller, interleaved_timings, session_of
from bench.networks import NETWORKS

MODELS = "tiny_mlp,tiny_transformer,mnist_cnn,dscnn_kws,resnet8,mbv2_035_96,mbv2_100_224,squeezenet"
TYPES = {"uint8": QuantType.QUInt8, "int8": QuantType.QInt8}


class Noise(CalibrationDataReader):
    """A few random inputs."""

    def __init__(self, model: onnx.ModelProto, count: int = 4) -> None:
        self.left = self._inputs(model, count)

    def _inputs(self, model: onnx.ModelProto, count: int) -> Iterator[dict[str, np.ndarray]]:
        port, rng = model.graph.input[0], np.random.default_rng(1)
        shape = [dim.dim_value for dim in port.type.tensor_type.shape.dim]
        for _ in range(count):
            yield {port.name: rng.normal(size=shape).astype(np.float32)}

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.left, None)


def quantized(model: onnx.ModelProto, given: argparse.Namespace) -> onnx.ModelProto:
    """``model`` with QuantizeLinear and DequantizeLinear around its operators, or with operators
    on integers whose activations are quantized as the model runs.

    Scales for each channel are of opset 13. onnx's converter takes initializers that are no inputs
    as undefined in models of before IR version 4.
    """
    if model.opset_import[0].version < 13:
        model = onnx.ModelProto.FromString(model.SerializeToString())
        model.ir_version = max(model.ir_version, 4)
        model = onnx.version_converter.convert_version(model, 13)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
        onnx.save(onnx.shape_inference.infer_shapes(model), source)
        if given.dynamic:
            kinds = ["Conv", "MatMul", "Gemm"]
            quantize_dynamic(source, target, kinds, weight_type=QuantType.QInt8)
            return onnx.load(target)
        quantize_static(
            source,
            target,
            Noise(model),
            per_channel=not given.tensors,
            activation_type=TYPES[given.activations],
            weight_type=QuantType.QInt8,
        )
        return onnx.load(target)


def measure(name: str, given: argparse.Namespace) -> list[str]:
    """A row of the table."""
    floats = NETWORKS[name]()
    models = {"int8": quantized(floats, given), "float": floats}
    sessions = {kind: session_of(model) for kind, model in models.items()}
    port = sessions["int8"].get_inputs()[0]
    x = np.random.default_rng(0).normal(size=port.shape).astype(np.float32)
    want = sessions["int8"].run(None, {port.name: x})[0]
    runs: dict[str, Callable[[], object]] = {
        "ort": lambda: sessions["int8"].run(None, {port.name: x})
    }
    facts, results, arenas = {}, {}, []
    with tempfile.TemporaryDirectory() as folder:
        for kind, model in models.items():
            artifact = smelt.compile(model, target="c")
            facts[kind], memory = artifact.plan.facts, artifact.plan.memory
            inner = Path(folder) / kind
            inner.mkdir()
            libraries, _ = build(artifact.files, inner, [given.compiler], [given.flags])
            results[kind] = np.empty_like(want)
            arenas.append(np.zeros(memory.arena_bytes + memory.alignment, np.uint8))
            (library,) = libraries.values()
            runs[kind] = caller(library, x, results[kind], arenas[-1], memory.alignment)
        times = {kind: min(each) for kind, each in interleaved_timings(runs, given.seconds).items()}
    off = np.abs(results["int8"] - want).max() / np.abs(want).max()
    ratios = [times["int8"] / times["float"], times["int8"] / times["ort"]]
    ratios += [
        facts["int8"][fact] / facts["float"][fact] for fact in ("weights_bytes", "arena_bytes")
    ]
    return [name, f"{times['int8'] / 1e6:.3f}", *(f"{ratio:.2f}" for ratio in ratios), f"{off:.3f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=re.sub(r"\s+", " ", __doc__ or ""))
    parser.add_argument("--models", default=MODELS)
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("--flags", default="native")
    parser.add_argument("--activations", choices=TYPES, default="uint8")
    parser.add_argument("--tensors", action="store_true")
    parser.add_argument("--dynamic", action="store_true")
    parser.add_argument("--seconds", type=float, default=1.0)
    given = parser.parse_args()
    table = Table("model", "ms", "time/float", "time/ORT", "weights", "arena", "off ORT")
    for name in given.models.split(","):
        table.add_row(*measure(name, given))
    Console(width=200).print(table)


if __name__ == "__main__":
    main()
