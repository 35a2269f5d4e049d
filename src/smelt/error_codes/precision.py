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
        "The data contain NaN, have no sample, or have a single one, so that none is left to "
        "measure the error on. Or the outputs of the model have no elements on these data.",
        "give at least two samples without NaN",
    ),
    "E685": ErrorCode(
        "labels that do not fit",
        "Labels belong to the metric top1, which needs one label for each row of the data and an "
        "output of floats with classes along its last axis.",
        "smelt quantize model.onnx --calibrate data.npz --metric top1 --labels labels.npy",
    ),
    "E686": ErrorCode(
        "an unknown or failing metric",
        "No metric has this name. Or the Python function raises an exception or returns no number.",
        "--metric relative",
    ),
    "E687": ErrorCode(
        "nothing to convert to a half type",
        "The model has no float32 numbers: its values are integers, bools or of other float types.",
        "leave out --fp16 or --bf16",
    ),
    "E688": ErrorCode(
        "options of half types that do not fit each other",
        "--fp16 and --bf16 exclude each other, --keep and --io need one of them, and --io names "
        "float32 or the type that is asked for.",
        "smelt optimize model.onnx --fp16 --io fp16 -o half.onnx",
    ),
    "E689": ErrorCode(
        "a half type for a target with an option of its own",
        "The conversion makes an ONNX model for the targets onnx and ort. The target coreml has "
        "the option precision=fp16.",
        "--target ort",
    ),
    "E677": ErrorCode(
        "nothing can be quantized within the error",
        "Even if a single operator is quantized, in the format that suits it best, the error "
        "exceeds the limit of `--within`. No file is written.",
        "allow a larger error, as the message says",
    ),
    "E678": ErrorCode(
        "nothing to quantize",
        "Only matrix products, convolutions and Gathers with constant float32 weights can be "
        "quantized. The model has none, or each would be slower in integers.",
        "`smelt inspect` lists the operators; `--gain bytes` does not count time",
    ),
    "E679": ErrorCode(
        "options of quantization with wrong values",
        "Activations are auto, static, dynamic or float; weights int8, int4 or nf4; blocks 16, 32, "
        "64 or 128; gains time, bytes or cycles, the last one with `--option cpu=` and a CPU whose "
        "kernels were counted.",
        "smelt quantize model.onnx --weights int4 --block 32",
    ),
    "E629": ErrorCode(
        "the file of another search",
        "The file of `--resume` holds errors that were measured with another model, other data or "
        "other options, or it is another kind of file, or it cannot be created.",
        "name a new file",
    ),
}
