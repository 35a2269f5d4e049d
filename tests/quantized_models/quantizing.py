"""Quantize a float model with the tools of ONNX Runtime, as its users do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

TYPES = {"uint8": QuantType.QUInt8, "int8": QuantType.QInt8}


class _Samples(CalibrationDataReader):  # type: ignore[misc]
    """Three random inputs."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.samples: Iterator[dict[str, np.ndarray]] = iter(
            [{"x": random_input(model, seed)} for seed in range(3)]
        )

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.samples, None)


def random_input(model: onnx.ModelProto, seed: int) -> np.ndarray:
    dims = model.graph.input[0].type.tensor_type.shape.dim
    shape = [dim.dim_value for dim in dims]
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def statically(
    model: onnx.ModelProto, activations: str, weights: str, per_channel: bool, **extra: object
) -> onnx.ModelProto:
    """``model`` with QuantizeLinear and DequantizeLinear around its operators."""
    with TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        onnx.save(model, before)
        quantize_static(
            before,
            after,
            _Samples(model),
            quant_format=QuantFormat.QDQ,
            activation_type=TYPES[activations],
            weight_type=TYPES[weights],
            per_channel=per_channel,
            extra_options=extra,
        )
        return onnx.load(after)


def dynamically(model: onnx.ModelProto, weights: str, per_channel: bool) -> onnx.ModelProto:
    """``model`` with DynamicQuantizeLinear before products of integers."""
    with TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.onnx", Path(folder) / "after.onnx"
        onnx.save(model, before)
        quantize_dynamic(before, after, weight_type=TYPES[weights], per_channel=per_channel)
        return onnx.load(after)
