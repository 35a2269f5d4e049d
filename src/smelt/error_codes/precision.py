"""Errors in choosing a precision: data, labels, metrics."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E683": ErrorCode(
        "no calibration data",
        "Static int8 needs the ranges of activations, and these are measured on data that the "
        "model will see.",
        "smelt quantize model.onnx --calibrate data.npz -o small.onnx",
    ),
    "E684": ErrorCode(
        "calibration data that cannot be used",
        "The data hold NaN, no sample, or a single sample, so that no other is left to measure the "
        "error on.",
        "give at least two samples without NaN",
    ),
    "E685": ErrorCode(
        "labels that do not fit",
        "Labels belong to the metric top1, which needs one label for each row of the data and an "
        "output of floats with classes along its last axis.",
        "smelt quantize model.onnx --calibrate data.npz --metric top1 --labels labels.npy",
    ),
    "E686": ErrorCode(
        "a metric that fails",
        "There is no metric of this name, or the Python function raises an exception or returns no "
        "number.",
        "--metric relative",
    ),
}
