"""``onnxruntime.quantization`` takes what ``smelt optimize --for quantize`` writes."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

import smelt
from smelt.precision.data import drawn_data
from smelt.precision.error import relative_error

MODELS = sorted((Path(__file__).parents[1] / "models").rglob("*.onnx"))
Feed = dict[str, np.ndarray]


class Samples(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, feeds: Sequence[Feed]) -> None:
        self.left: Iterator[Feed] = iter(feeds)

    def get_next(self) -> Feed | None:
        return next(self.left, None)


def outputs_of(path: Path, feeds: Sequence[Feed]) -> list[Feed]:
    options = ort.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = ort.InferenceSession(path, options)
    names = [output.name for output in session.get_outputs()]
    return [dict(zip(names, session.run(None, feed), strict=True)) for feed in feeds]


@pytest.mark.slow
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
@pytest.mark.parametrize("kind", ["dynamic", "static"])
def test_quantized_models_load_and_err_as_the_source_does(
    path: Path, kind: str, tmp_path: Path
) -> None:
    logging.disable(logging.WARNING)
    model = smelt.load(path)
    data = drawn_data(model)
    names = [str(value.name) for value in model.graph.inputs]
    calibration, held = (
        [
            {n: v for n, v in zip(names, sample, strict=True) if isinstance(v, np.ndarray)}
            for sample in part
        ]
        for part in (data.calibration, data.held_out)
    )
    optimized = smelt.to_proto(smelt.optimize(model, consumers="quantize"))
    errors = []
    for label, source in {"source": onnx.load(path), "optimized": optimized}.items():
        before, after = tmp_path / f"{label}.onnx", tmp_path / f"{label}-{kind}.onnx"
        onnx.save(source, before)
        if kind == "dynamic":
            quantize_dynamic(before, after, weight_type=QuantType.QInt8)
        else:
            quantize_static(before, after, Samples(calibration))
        errors.append(relative_error(outputs_of(path, held), outputs_of(after, held)))
    # The tools quantize products with constant weights only. The optimized model has more of these
    # than the source, so that more of it is rounded.
    factor, floor = (2, 3e-4) if kind == "dynamic" else (1.1, 0)
    assert errors[1] <= factor * errors[0] + floor
