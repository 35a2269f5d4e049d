"""Limits of targets."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.error_codes.code import ErrorCode

CODES: Mapping[str, ErrorCode] = {
    "E401": ErrorCode(
        "the target needs fixed shapes",
        "The target plans all memory before a run, or states the sizes of its inputs as a Core ML "
        "package does, so it needs a number or bounds for every dim. "
        "With `--dim B=1..16` it plans memory for 16 and runs any size from 1 to 16. `smelt "
        "explain TARGET` shows whether a target supports bounds. A size that depends on data, such "
        "as the result of NonZero, has bounds already and needs no option.",
        "--dim B=1, or --dim B=1..16 for c and other targets that support bounds",
    ),
    "E402": ErrorCode(
        "the target lacks an element type",
        "A value has an element type that the target cannot hold.",
        "cast inputs and weights before compiling",
    ),
    "E403": ErrorCode(
        "the target does not support this opset",
        "The ONNX opset of the model is outside the range of the target.",
        "--opset 21",
    ),
    "E404": ErrorCode(
        "too many dims",
        "A value of the model has more dims than the arrays of the target can have.",
        "merge dims, or choose another target",
    ),
    "E405": ErrorCode(
        "a memory of the target is too small",
        "One operation and the values that are live at its step need more bytes than the "
        "memory has.",
        "split the operation into bands, give the memory more bytes, or add a fallback",
    ),
    "E406": ErrorCode(
        "a weight overflows float16",
        "The target computes in float16, whose largest number is 65504, and a constant of the "
        "model is larger.",
        "--option keep=NODE keeps the node that reads it in float32, --option precision=fp32 all",
    ),
    "E407": ErrorCode(
        "an empty tensor",
        "A value of the model has a dim of size 0, or one that may be 0, and the target has no "
        "empty tensors.",
        "give the dim a size of 1 or more: --dim B=1..16",
    ),
    "E408": ErrorCode(
        "the library does not fit the board",
        "`--option fit=flash=256K,ram=64K` states the memory of a board, and the C library needs "
        "more. Flash holds code and weights; RAM holds the arena, the stack, and the buffers of "
        "inputs and outputs. No file is written.",
        "int8 weights and activations by `smelt quantize`, or an arena in row bands: "
        "--option arena=BYTES",
    ),
    "E411": ErrorCode(
        "a size is known only when the model runs",
        "The target plans memory before a run, and a size depends on the data of the run.",
        "fix the shape in the model, bound a size of an output by its name (--dim NAME=1..64), or "
        "use --target onnx",
    ),
}
