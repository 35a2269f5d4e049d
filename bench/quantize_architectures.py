"""Quantize the models of a folder by ONNX Runtime's own tools, beside the models themselves.

    python -m bench.quantize_architectures FOLDER [--only 'bert*'] [--kinds qdq,qdq_tensors,dynamic]

``qdq`` and ``qdq_tensors`` have QuantizeLinear and DequantizeLinear around their operators, with a
scale for each channel of a weight or for each weight, and scales of activations that are calibrated
on random inputs. ``dynamic`` measures those scales in each run. Files are called NAME.KIND.onnx.
"""

from __future__ import annotations

import argparse
import fnmatch
import logging
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.shape_inference import quant_pre_process

import smelt
from bench.ort import SIZES
from smelt.runtime.inputs import random_inputs

RUNS = 3
"""Of the calibration."""


class RandomInputs(CalibrationDataReader):
    """Inputs that the model takes, at the sizes of the benchmark."""

    def __init__(self, path: Path) -> None:
        self.left = self._made(path)

    def _made(self, path: Path) -> Iterator[dict[str, np.ndarray]]:
        model = smelt.load(path)
        for seed in range(RUNS):
            values = random_inputs(model, SIZES, seed)
            yield {
                str(v.name): np.asarray(x) for v, x in zip(model.graph.inputs, values, strict=True)
            }

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.left, None)


def static(source: Path, target: Path, per_channel: bool) -> None:
    """8 bits for activations and weights, both signed."""
    quantize_static(
        source,
        target,
        RandomInputs(source),
        per_channel=per_channel,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
    )


def dynamic(source: Path, target: Path) -> None:
    """Of products only: for convolutions the tools write shapes that contradict each other."""
    products = ["MatMul", "Gemm", "LSTM"]
    quantize_dynamic(source, target, products, weight_type=QuantType.QInt8)


KINDS: dict[str, Callable[[Path, Path], None]] = {
    "qdq": partial(static, per_channel=True),
    "qdq_tensors": partial(static, per_channel=False),
    "dynamic": dynamic,
}


def quantize(path: Path, kind: str) -> str:
    """Write one file; what went wrong in one line, or nothing."""
    target = path.with_suffix(f".{kind}.onnx")
    with tempfile.TemporaryDirectory() as folder:
        prepared = Path(folder) / "model.onnx"
        try:
            quant_pre_process(path, prepared, skip_symbolic_shape=True, skip_optimization=True)
            KINDS[kind](prepared, target)
            onnx.checker.check_model(target)
        except Exception as error:  # noqa: BLE001 - the tools raise whatever goes wrong
            target.unlink(missing_ok=True)
            return f"{type(error).__name__}: {(str(error).strip() or '-').splitlines()[0][:200]}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="*")
    parser.add_argument("--kinds", default=",".join(KINDS))
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    for path in sorted(options.folder.glob("*.onnx")):
        if path.suffixes[-2].lstrip(".") in KINDS or not fnmatch.fnmatch(path.stem, options.only):
            continue
        for kind in options.kinds.split(","):
            print(f"{path.stem} {kind}: {quantize(path, kind) or 'written'}", flush=True)


if __name__ == "__main__":
    main()
